"""Shows an item whose value is a constant of the resumed part."""

import torch

#: graphs 3


@torch.compile(backend="eager")
def f(x, y):
    n = int(x.sum())  #: break "int(" Unsupported Tensor.item() call with capture_scalar_outputs=False #: recompile 1 "int(x.sum())" 2 -> 3 #: category scalar-extraction
    return y.expand(n, 3)


for value in (2, 3, 4):
    f(torch.tensor([value]), torch.ones(3))
