import torch

@torch.compile(backend="eager", dynamic=True)
def f(x):
    return x * 2

f(torch.ones(3, 4))
f(torch.ones(5, 8)[:, :6])
