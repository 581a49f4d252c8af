#: because: replaces the learning rate
import torch

weight = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([weight], lr=0.1)


@torch.compile(backend="eager")
def step(value, gradient):
    return value - optimizer.param_groups[0]["lr"] * gradient


for count in range(3):
    step(torch.ones(3), torch.ones(3))
    for group in optimizer.param_groups:
        group.update(lr=0.1 / (count + 2))
