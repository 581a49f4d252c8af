import torch

@torch.compile(backend="eager")
def f(x, p):
    return x * p

for p in (float("nan"), 1.5):
    f(torch.ones(3), p)
