"""Shows a size that changes once; the second compile is dynamic and serves the third size."""

import torch

#: graphs 2


@torch.compile(backend="eager")  #: recompile 1 "x.size()[0]" 3 -> 4
def f(x):
    return x * 2


for size in (3, 4, 5):
    f(torch.ones(size))
