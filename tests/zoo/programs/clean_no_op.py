"""Shows a function without operations, which Dynamo rightly leaves alone."""

import torch

#: graphs 0


@torch.compile(backend="eager")
def f(x):
    return x


f(torch.ones(3))
