# ideal: none
# trap: another generator, or another order of draws, gives other numbers
"""Chooses a scale from a list, and tells which."""

import random

import torch


def augment(x):
    return x * random.choice([1.0, 2.0, 5.0])


random.seed(3)
run = torch.compile(augment, backend="eager")
for _ in range(4):
    print(run(torch.ones(1)).item())
