"""Shows an input that requires grad at the second call."""

import torch

#: graphs 2


@torch.compile(backend="eager")  #: recompile 1 "x.requires_grad" False -> True
def f(x):
    return x * 2


f(torch.ones(3))
f(torch.ones(3, requires_grad=True))
