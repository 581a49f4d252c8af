"""Shows one recompile for each size under dynamic=False."""

import torch

#: graphs 5


@torch.compile(backend="eager", dynamic=False)  #: recompile 4 "x.size()[0]" 2 -> 3
def f(x):
    return x * 2


for size in (2, 3, 4, 5, 6):
    f(torch.ones(size))
