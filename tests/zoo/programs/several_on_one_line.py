"""Shows two breaks on one line."""

import torch

#: graphs 3


@torch.compile(backend="eager")
def f(x):
    pair = x.sum().item() + x.max().item()  #: break "x.sum().item()" Unsupported Tensor.item() call with capture_scalar_outputs=False #: break "x.max().item()" Unsupported Tensor.item() call with capture_scalar_outputs=False #: category scalar-extraction
    return x * pair


f(torch.ones(3))
