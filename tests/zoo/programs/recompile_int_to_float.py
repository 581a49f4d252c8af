"""Shows an argument that is an int first and a float later."""

import torch

#: graphs 2


@torch.compile(backend="eager")  #: recompile 1 "v" 2 -> 2.5
def f(x, v):
    return x * v


f(torch.ones(3), 2)
f(torch.ones(3), 2.5)
