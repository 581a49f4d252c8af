"""Shows a string argument that selects the operation."""

import torch

#: graphs 3


@torch.compile(backend="eager")  #: recompile 2 "mode" 'relu' -> 'tanh'
def f(x, mode):
    return x.relu() if mode == "relu" else x.tanh() if mode == "tanh" else x.sigmoid()


for mode in ("relu", "tanh", "sigmoid"):
    f(torch.ones(3), mode)
