#: because: would share the tensor
import torch

weights = [torch.nn.Parameter(torch.ones(3)) for _ in range(2)]
optimizer = torch.optim.SGD([{"params": [each]} for each in weights], lr=0.1)


@torch.compile(backend="eager")
def step(value, gradient):
    return value - optimizer.param_groups[0]["lr"] * gradient


for _ in range(3):
    step(torch.ones(3), torch.ones(3))
    for group in optimizer.param_groups:
        group["lr"] *= 0.5
