"""Shows a callee that tries what breaks: it runs eagerly, its caller compiles around it."""

import torch

#: graphs 2


def guess(x):  #: eager Unsupported Tensor.item() call with capture_scalar_outputs=False
    try:
        return x.sum().item()  #: break "x.sum().item()" Unsupported Tensor.item() call with capture_scalar_outputs=False #: category scalar-extraction
    except RuntimeError:
        return 1.0


@torch.compile(backend="eager")
def f(x):
    y = x + 1
    scale = guess(y)
    return y * scale


f(torch.ones(3))
