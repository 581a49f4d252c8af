# ideal: converted-after
"""A check for overflow that gives its caller a bool, also for no tensors at all."""

import torch


@torch.compile(backend="eager")
def overflows(grads, scale):
    scaled = [g / scale for g in grads]
    return any(not torch.isfinite(g).all() for g in scaled)


for bad in (1.0, float("inf")):
    print(overflows([torch.ones(3), torch.full((2,), bad)], torch.tensor(2.0)) is (bad > 2))
print(overflows([], torch.tensor(2.0)))
