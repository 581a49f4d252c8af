import torch

def f(x):
    return x * 2

compiled = torch.compile(f, backend="eager")
compiled(torch.ones(3))
compiled(torch.ones(4))
