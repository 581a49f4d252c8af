"""Shows a branch on a tensor's value, taken both ways."""

import torch

#: graphs 3


@torch.compile(backend="eager")
def f(x):
    y = x * 2
    if y.sum() > 0:  #: break "y.sum() > 0" Data-dependent branching #: category data-dependent-branch
        return y + 1
    return y - 1


f(torch.ones(3))
f(-torch.ones(3))
