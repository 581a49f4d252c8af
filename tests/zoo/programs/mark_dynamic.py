"""Shows a size marked dynamic beforehand, so nothing recompiles."""

import torch

#: graphs 1


@torch.compile(backend="eager")
def f(x):
    return x * 2


for size in (3, 4, 5):
    x = torch.ones(size)
    torch._dynamo.mark_dynamic(x, 0)
    f(x)
