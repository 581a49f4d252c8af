import torch


@torch.compile(backend="eager")
def f(x):
    return x * 2


x = torch.ones(3)
f(x)  # warm-up
with torch.no_grad():
    for _ in range(3):
        f(x)
