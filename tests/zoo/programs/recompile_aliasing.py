"""Shows one tensor passed twice, then two different ones."""

import torch

#: graphs 2


@torch.compile(backend="eager")  #: recompile 1 "x is y" True -> False
def f(x, y):
    return x + y


same = torch.ones(3)
f(same, same)
f(same, torch.ones(3))
