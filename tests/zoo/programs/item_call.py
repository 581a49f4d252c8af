"""Shows a scalar read out of a tensor with item."""

import torch

#: graphs 2


@torch.compile(backend="eager")
def f(x):
    scale = x.sum().item()  #: break "x.sum().item()" Unsupported Tensor.item() call with capture_scalar_outputs=False #: category scalar-extraction
    return x * scale


f(torch.ones(3))
