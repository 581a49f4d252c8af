#: because: unclear whether
import torch

weight = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([weight], lr=0.1)


@torch.compile(backend="eager")
def step(value, gradient):
    return value - optimizer.param_groups[0]["lr"] * gradient


def adjust(group, rate):
    group["lr"] = rate


for count in range(3):
    step(torch.ones(3), torch.ones(3))
    adjust(optimizer.param_groups[0], 0.1 / (count + 2))
