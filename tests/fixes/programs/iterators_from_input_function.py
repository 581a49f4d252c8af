# ideal: list-for-iterator
"""Inputs from a function that gives iterators."""

import torch


def inputs(n):
    base = torch.arange(6.0).reshape(2, 3) + n
    return base, zip(("a", "b"), (base * 2, base * 3)), enumerate([base, base + 1])


@torch.compile(backend="eager")
def mix(base, named, numbered):
    total = base
    for name, t in named:
        total = total + t if name == "a" else total - t
    for i, t in numbered:
        total = total + i * t
    return total


for n in range(3):
    print(mix(*inputs(n)).sum().item())
