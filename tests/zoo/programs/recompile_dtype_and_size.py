"""Shows a dtype and a size that change at once, of which torch names the dtype only."""

import torch

#: graphs 2


@torch.compile(backend="eager")  #: recompile 1 "x.dtype" torch.float32 -> torch.float64 #: recompile 1 "x.size()[0]" 3 -> 4
def f(x):
    return x * 2


f(torch.ones(3))
f(torch.ones(4, dtype=torch.float64))
