# ideal: value-read-first
# A draw from Python's generator decides by itself, before all else.
import random

import torch


@torch.compile(backend="eager")
def augment(x):
    if random.random() < 0.5:
        x = x.flip(-1)
    return x * 2


random.seed(0)
for _ in range(4):
    print(augment(torch.arange(3.0)).tolist())
