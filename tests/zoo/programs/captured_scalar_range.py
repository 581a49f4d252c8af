"""Shows a range over a captured scalar, a break to which torch gives no type."""

import torch

#: graphs 2


@torch.compile(backend="eager")
def f(x):
    n = x.sum().item()
    y = x * 2
    steps = range(n)  #: break "range(n)" Could not extract specialized integer from data-dependent expression #: category scalar-extraction
    return y * len(steps)


with torch._dynamo.config.patch(capture_scalar_outputs=True):
    f(torch.tensor([1, 2]))
