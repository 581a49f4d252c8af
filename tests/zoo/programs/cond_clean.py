"""Shows torch.cond in place of a branch on data."""

import torch

#: graphs 1


@torch.compile(backend="eager")
def f(x):
    return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,))


f(torch.ones(3))
f(-torch.ones(3))
