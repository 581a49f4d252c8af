import torch

@torch.compile(backend="eager")
def f(x, v):
    return x * v

f(torch.ones(3), 2)
f(torch.ones(3), 2.5)
