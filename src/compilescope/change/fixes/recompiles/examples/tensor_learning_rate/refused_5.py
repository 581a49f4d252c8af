#: because: computes with the learning rate
import torch
from torch import optim

weight = torch.nn.Parameter(torch.ones(3))
optimizer = optim.SGD([weight], lr=0.1)  # halved


@torch.compile(backend="eager")
def step(value, gradient):
    return value - optimizer.param_groups[0]["lr"] * gradient


for _ in range(3):
    step(torch.ones(3), torch.ones(3))
    optimizer.param_groups[0]["lr"] *= 0.5
