# ideal: any
# trap: a time that is read once is not the time of each call
"""A time stamp beside each result; they must grow."""

import time

import torch

stamps = []


def stamped(x):
    y = x.cos()
    stamps.append(time.monotonic_ns())
    return y * 2


run = torch.compile(stamped, backend="eager")
for _ in range(3):
    run(torch.ones(2))
print(len(stamps), sorted(set(stamps)) == stamps)
