# ideal: list-for-iterator
# short: a generator can be gone through once only, so the call is not replayed
"""A generator that is made for the call, and gone through once."""

import torch


def windows(x, size):
    for start in range(0, len(x), size):
        yield x[start : start + size]


@torch.compile(backend="eager")
def energy(parts):
    total = torch.zeros(())
    for part in parts:
        total = total + part.square().mean()
    return total


for scale in (1.0, 2.0):
    print(energy(windows(torch.arange(6.0) * scale, 2)).item())
