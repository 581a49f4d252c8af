"""Shows two inputs of one shape that differ in stride."""

import torch

#: graphs 2


@torch.compile(backend="eager")  #: recompile 1 "x.stride()[0]" 4 -> 1 #: recompile 1 "x.stride()[1]" 1 -> 3
def f(x):
    return x * 2


f(torch.ones(3, 4))
f(torch.ones(4, 3).t())
