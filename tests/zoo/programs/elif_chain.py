"""Shows an if and an elif that both depend on data."""

import torch

#: graphs 5


@torch.compile(backend="eager")
def f(x):
    total = x.sum()
    if total > 10:  #: break "total > 10" Data-dependent branching #: category data-dependent-branch
        y = x + 1
    elif total < -10:  #: break "total < -10" Data-dependent branching #: category data-dependent-branch
        y = x - 1
    else:
        y = x * 2
    return y.relu()


f(torch.full((3,), 10.0))
f(torch.full((3,), -10.0))
f(torch.zeros(3))
