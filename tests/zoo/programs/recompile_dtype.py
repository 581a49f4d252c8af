"""Shows a dtype that changes."""

import torch

#: graphs 2


@torch.compile(backend="eager")  #: recompile 1 "x.dtype" torch.float32 -> torch.float64
def f(x):
    return x * 2


f(torch.ones(3))
f(torch.ones(3, dtype=torch.float64))
