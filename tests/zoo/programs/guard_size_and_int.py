"""Shows a tensor's size and an int argument that change at once."""

import torch

#: graphs 2


@torch.compile(backend="eager")  #: recompile 1 "n" 5 -> 6 #: recompile 1 "x.size()[0]" 3 -> 4
def f(x, n):
    return x * n


f(torch.ones(3), 5)
f(torch.ones(4), 6)
