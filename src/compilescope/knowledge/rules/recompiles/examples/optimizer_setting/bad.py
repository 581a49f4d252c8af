import torch

weight = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([weight], lr=0.1)

@torch.compile(backend="eager")
def step(value, gradient):
    return value - optimizer.param_groups[0]["lr"] * gradient

for _ in range(3):
    print(step(torch.ones(3), torch.ones(3)))
    optimizer.param_groups[0]["lr"] *= 0.5
