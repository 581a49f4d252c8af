import torch

weight = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([weight], lr=0.1)

@torch.compile(backend="eager")
def step(value, gradient, lr):
    return value - lr * gradient

for _ in range(3):
    lr = torch.tensor(optimizer.param_groups[0]["lr"], dtype=torch.float64)
    print(step(torch.ones(3), torch.ones(3), lr))
    optimizer.param_groups[0]["lr"] *= 0.5
