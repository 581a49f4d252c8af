"""Shows a loop with a break after an earlier break: the start compiles, the rest runs eagerly."""

import torch

#: graphs 1


@torch.compile(backend="eager")  #: eager-rest Failed to trace builtin operator
def f(x):
    y = x + 1
    scale = y.sum().item()  #: break "y.sum().item()" Unsupported Tensor.item() call with capture_scalar_outputs=False #: category scalar-extraction
    for i in range(2):
        y = y * scale
        print(i)  #: break "print(" Failed to trace builtin operator #: category logging
    return y.relu()


f(torch.ones(3))
