"""Shows indexing by a boolean mask."""

import torch

#: graphs 2


@torch.compile(backend="eager")
def f(x):
    picked = x[x > 0]  #: break "x[x" Dynamic shape operator #: category dynamic-shape-operator
    return picked * 2


f(torch.tensor([1.0, -1.0, 2.0]))
