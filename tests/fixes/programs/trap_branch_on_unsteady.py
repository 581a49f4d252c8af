# ideal: none
# trap: one side of the branch is taken on zeros alone, where the result is noise

import os

import torch

NOISE = int.from_bytes(os.urandom(3)) / 2**24


@torch.compile(backend="eager")
def f(x):
    if x.abs().sum() == 0:
        x = x + NOISE
    return x * 2


for size in (0.5, 1.0):
    print(f(torch.full((4,), size)).tolist())
