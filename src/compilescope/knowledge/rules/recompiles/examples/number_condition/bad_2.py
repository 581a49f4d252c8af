import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, p):
    return x * p if p > 0.5 else x

for p in (0.1, 0.2, 0.7):
    f(torch.ones(3), p)
