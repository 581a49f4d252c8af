"""Shows dynamic=True, so no size recompiles."""

import torch

#: graphs 1


@torch.compile(backend="eager", dynamic=True)
def f(x, y):
    return x @ y


for size in (3, 4, 5):
    f(torch.ones(2, size), torch.ones(size, 2))
