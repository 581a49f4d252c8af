import torch

@torch.compile(backend="eager")
def f(x, **kwargs):
    return x * 2 + sum(kwargs.values())

print(f(torch.ones(3)))
print(f(torch.ones(3), bias=torch.ones(3)))
