import torch

@torch.compile(backend="eager")
def f(x, p):
    return x * p if p > 0.5 else x + 1

for p in (0.1, 0.2, 0.7):
    f(torch.ones(3), p)
