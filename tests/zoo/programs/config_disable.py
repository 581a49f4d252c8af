"""Shows config.disable at the first call, which outlives the setting."""

import torch

#: graphs 0


@torch.compile(backend="eager")  #: eager disabled
def f(x):
    return x * 2


with torch._dynamo.config.patch(disable=True):
    f(torch.ones(3))
f(torch.ones(3))
