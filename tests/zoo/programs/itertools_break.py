"""Shows itertools.takewhile with a predicate that prints."""

import itertools

import torch

#: graphs 0


def small(n):
    print(n)  #: break "print(" Failed to trace builtin operator #: category logging
    return n < 3


@torch.compile(backend="eager")  #: eager Failed to trace builtin operator
def f(x):
    y = x + 1
    kept = list(itertools.takewhile(small, [1, 2, 3]))
    return y * len(kept)


f(torch.ones(3))
