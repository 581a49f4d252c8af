import torch

@torch.compile(backend="eager")
def f(x, scale):
    return x * scale

f(torch.ones(3), torch.tensor(2.0))
f(torch.ones(3), 3.0)
