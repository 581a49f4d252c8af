# ideal: torch-random
"""A little noise on the input, while the result is only looked at roughly."""

import random

import torch


def noisy(x):
    offset = random.gauss(0.0, 0.01)
    return torch.relu(x + offset)


run = torch.compile(noisy, backend="eager")
out = [run(torch.ones(4)) for _ in range(3)]
print(all(abs(each.mean().item() - 1) < 0.2 for each in out))
