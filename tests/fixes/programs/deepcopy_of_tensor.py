# ideal: clone-for-deepcopy
import copy

import torch


@torch.compile(backend="eager")
def momentum(x, velocity):
    before = copy.deepcopy(velocity)
    velocity.mul_(0.9).add_(x)
    return velocity - before


v = torch.zeros(4)
for n in range(3):
    print(momentum(torch.full((4,), float(n)), v).tolist(), v.tolist())
