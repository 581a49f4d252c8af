"""Shows a branch on a captured scalar."""

import torch

#: graphs 2


@torch.compile(backend="eager")
def f(x):
    n = x.sum().item()
    y = x * 2
    if n > 3:  #: break "n > 3" Data-dependent branching #: category data-dependent-branch
        return y + 1
    return y - 1


with torch._dynamo.config.patch(capture_scalar_outputs=True):
    f(torch.ones(3))
