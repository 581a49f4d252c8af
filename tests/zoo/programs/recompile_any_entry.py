"""Shows a third call that misses the first entry by its size and the second by its dtype too."""

import torch

#: graphs 3


@torch.compile(backend="eager")  #: recompile 2 "x.dtype" torch.float32 -> torch.float64 #: recompile 2 "x.size()[0]" 3 -> 4
def f(x):
    return x * 2


f(torch.ones(3))
f(torch.ones(3, dtype=torch.float64))
f(torch.ones(4))
