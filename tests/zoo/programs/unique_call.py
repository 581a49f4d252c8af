"""Shows torch.unique on computed values."""

import torch

#: graphs 2


@torch.compile(backend="eager")
def f(x):
    values = torch.unique(x * 2)  #: break "torch.unique(" Dynamic shape operator #: category dynamic-shape-operator
    return values + 1


f(torch.tensor([1.0, 1.0, 2.0]))
