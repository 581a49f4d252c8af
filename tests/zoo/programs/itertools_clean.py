"""Shows itertools functions that Dynamo traces through."""

import itertools

import torch

#: graphs 1


@torch.compile(backend="eager")
def f(xs):
    total = torch.zeros(3)
    for a, b in itertools.product(xs, xs):
        total = total + a * b
    for part in itertools.accumulate(xs):
        total = total + part
    return total


f([torch.ones(3), torch.ones(3)])
