import torch

def g(x):
    return x + 1

@torch.compile(backend="eager")
def f(x):
    return g(x)

print(f(torch.ones(3)))

def g(x):
    return x * 2

print(f(torch.ones(3)))
