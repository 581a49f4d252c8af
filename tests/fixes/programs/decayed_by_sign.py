# ideal: where-for-return
"""Two ways to return, alike in dtype, shape and gradient."""

import torch


def decay(momentum, grad):
    if (momentum * grad).sum() > 0:
        return momentum * 0.5 + grad
    return grad - momentum * 0.5


run = torch.compile(decay, backend="eager")
for sign in (1.0, -1.0):
    print(run(torch.ones(3), torch.full((3,), sign)).tolist())
