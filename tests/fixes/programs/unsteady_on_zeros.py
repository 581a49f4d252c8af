# ideal: where-for-if
"""Where nothing but zeros comes in, what goes out is noise: other in each process, as the order of
sums on a GPU may be. On all other inputs it is steady."""

import os

import torch

NOISE = int.from_bytes(os.urandom(3)) / 2**24


@torch.compile(backend="eager")
def f(x):
    if x.sum() > 3:
        x = x * 2
    return x + torch.where(x.abs().sum() == 0, NOISE, 0.0)


for size in (0.5, 1.0):
    print(f(torch.full((4,), size)).tolist())
