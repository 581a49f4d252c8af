"""Shows a loop bound read from a tensor, which is a constant of the resumed part."""

import torch

#: graphs 3


@torch.compile(backend="eager")
def f(x, n):
    y = x + 1
    for _ in range(int(n)):  #: break "int(n)" Unsupported Tensor.item() call with capture_scalar_outputs=False #: recompile 1 "int(n)" 2 -> 3 #: category scalar-extraction
        y = y * 2
    return y


f(torch.ones(3), torch.tensor(2))
f(torch.ones(3), torch.tensor(3))
