"""Shows one site reached from two callers."""

import torch

#: graphs 6


def noisy(x):
    y = x + 1
    print("noisy")  #: break "print(" Failed to trace builtin operator #: category logging
    return y * 2


@torch.compile(backend="eager")
def first(x):
    return noisy(x - 1) + 1


@torch.compile(backend="eager")
def second(x):
    return noisy(x - 2) + 2


first(torch.ones(3))
second(torch.ones(3))
