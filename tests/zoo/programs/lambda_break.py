"""Shows a break inside a lambda."""

import torch

#: graphs 3

show = lambda y: print("lambda") or y * 2  #: break "print(" Failed to trace builtin operator #: category logging


@torch.compile(backend="eager")
def f(x):
    return show(x + 1) - 1


f(torch.ones(3))
