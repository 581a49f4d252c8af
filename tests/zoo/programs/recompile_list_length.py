"""Shows a list argument that grows by one element."""

import torch

#: graphs 2


@torch.compile(backend="eager")  #: recompile 1 "len(xs)" 1 -> 2
def f(xs):
    return torch.stack(xs).sum()


f([torch.ones(3)])
f([torch.ones(3), torch.ones(3)])
