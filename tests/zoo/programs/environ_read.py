"""Shows the environment read inside the compiled function."""

import os

import torch

#: graphs 1


@torch.compile(backend="eager")
def f(x):
    y = x + 1
    if os.environ.get("ZOO_UNSET_NAME"):
        return y - 1
    return y * 2


f(torch.ones(3))
