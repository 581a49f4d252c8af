"""Shows itertools.pairwise and tee over numbers, which break nothing."""

import itertools

import torch

#: graphs 1


@torch.compile(backend="eager")
def f(x):
    y = x + 1
    for a, b in itertools.pairwise([1, 2, 3]):
        y = y * a + b
    first, second = itertools.tee([4, 5])
    return y * sum(first) * sum(second)


f(torch.ones(3))
