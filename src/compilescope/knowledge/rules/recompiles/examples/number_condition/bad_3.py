import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, p):
    return x * p

for p in (0.1, float("nan")):
    f(torch.ones(3), p)
