"""Shows nonzero, whose result has a shape that depends on data."""

import torch

#: graphs 2


@torch.compile(backend="eager")
def f(x):
    where = (x > 0).nonzero()  #: break "(x > 0).nonzero()" Dynamic shape operator #: category dynamic-shape-operator
    return where + 1


f(torch.tensor([1.0, -1.0, 2.0]))
