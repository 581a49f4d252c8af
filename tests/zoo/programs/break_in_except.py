"""Shows a break in an except block that runs."""

import torch

#: graphs 0


@torch.compile(backend="eager")  #: eager Unsupported Tensor.item() call with capture_scalar_outputs=False
def f(x, table):
    y = x + 1
    try:
        scale = table["scale"]
    except KeyError:
        scale = y.sum().item()  #: break "y.sum().item()" Unsupported Tensor.item() call with capture_scalar_outputs=False #: category scalar-extraction
    return y * scale


f(torch.ones(3), {})
