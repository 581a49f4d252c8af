"""Shows an int argument that changes once and is dynamic from then on."""

import torch

#: graphs 2


@torch.compile(backend="eager")  #: recompile 1 "n" 3 -> 4
def f(x, n):
    return x * n


for n in (3, 4, 5):
    f(torch.ones(3), n)
