"""Shows a function without tensors, which Dynamo rightly leaves alone."""

import torch

#: graphs 0


@torch.compile(backend="eager")
def f(n):
    return n + 1


f(3)
