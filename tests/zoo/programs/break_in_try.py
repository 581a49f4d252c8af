"""Shows a break under try, from which Dynamo cannot resume."""

import torch

#: graphs 0


@torch.compile(backend="eager")  #: eager Unsupported Tensor.item() call with capture_scalar_outputs=False
def f(x):
    y = x + 1
    try:
        scale = y.sum().item()  #: break "y.sum().item()" Unsupported Tensor.item() call with capture_scalar_outputs=False #: category scalar-extraction
    except ValueError:
        scale = 1.0
    return y * scale


f(torch.ones(3))
