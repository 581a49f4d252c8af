"""Shows torch.where in place of a branch, under no_grad and a Python loop."""

import torch

#: graphs 1


@torch.compile(backend="eager")
def f(x):
    with torch.no_grad():
        for step in range(3):
            x = torch.where(x > step, x - 1, x + 1)
    return x


f(torch.ones(3))
