"""Shows an assert on a tensor that stays in the graph."""

import torch

#: graphs 1


@torch.compile(backend="eager")
def f(x):
    y = x + 1
    assert (y > 0).all(), "not positive"
    return y * 2


f(torch.ones(3))
