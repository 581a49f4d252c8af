"""Shows a stretch under set_stance("force_eager") between two compiled calls."""

import torch

#: graphs 1


@torch.compile(backend="eager")
def f(x):
    return x * 2


f(torch.ones(3))
with torch.compiler.set_stance("force_eager"):
    f(torch.ones(4))
f(torch.ones(3))
