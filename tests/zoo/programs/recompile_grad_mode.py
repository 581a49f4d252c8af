"""Shows the same call with and without grad mode."""

import torch

#: graphs 2


@torch.compile(backend="eager")  #: recompile 1 "grad_mode" True -> False
def f(x):
    return x * 2


f(torch.ones(3))
with torch.no_grad():
    f(torch.ones(3))
