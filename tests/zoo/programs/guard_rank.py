"""Shows an input that gains a dimension."""

import torch

#: graphs 2


@torch.compile(backend="eager")  #: recompile 1 "x.dim()" 1 -> 2
def f(x):
    return x * 2


f(torch.ones(3))
f(torch.ones(3, 3))
