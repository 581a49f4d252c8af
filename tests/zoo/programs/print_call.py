"""Shows a print between two operations."""

import torch

#: graphs 2


@torch.compile(backend="eager")
def f(x):
    y = x + 1
    print("between")  #: break "print(" Failed to trace builtin operator #: category logging
    return y * 2


f(torch.ones(3))
f(torch.ones(3))
