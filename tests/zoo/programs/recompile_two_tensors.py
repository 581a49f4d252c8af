"""Shows two tensors whose sizes change at once, of which torch names the first only."""

import torch

#: graphs 2


@torch.compile(backend="eager")  #: recompile 1 "x.size()[0]" 3 -> 5 #: recompile 1 "y.size()[0]" 4 -> 6
def f(x, y):
    return x * 2, y * 2


f(torch.ones(3), torch.ones(4))
f(torch.ones(5), torch.ones(6))
