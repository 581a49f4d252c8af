"""Shows sizes zero and one, which stay specialised when a size is dynamic."""

import torch

#: graphs 4


@torch.compile(backend="eager")  #: recompile 3 "x.size()[0]" 3 -> 4
def f(x):
    return x * 2


for size in (3, 4, 1, 0):
    f(torch.ones(size))
