# ideal: value-read-first
"""Traps: both sides values, but of another dtype or shape; a test on an int tensor."""

import torch


@torch.compile(backend="eager")
def scale(x, w):
    if w.sum() > 0:
        y = x * 2
    else:
        y = x.double()
    if (x > 5).all():
        z = w
    else:
        z = w.unsqueeze(0)
    return y, z


for a in (1.0, -1.0, 9.0):
    y, z = scale(torch.full((3,), a), torch.full((3,), int(a)))
    print(y.dtype, tuple(z.shape), z.dtype, y.sum().item())
