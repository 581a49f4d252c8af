# ideal: uniform-for-random
"""A random scale, from Python's generator, whose stream the program relies on."""

import random

import torch


def augment(x):
    scale = 0.9 + 0.2 * random.random()
    return x * scale


random.seed(7)
compiled = torch.compile(augment, backend="eager")
for _ in range(3):
    print(round(compiled(torch.ones(2)).sum().item(), 6))
print(round(random.random(), 6))
