import torch

def g(x):
    return x + 1

def h(x):
    return x * 2

@torch.compile(backend="eager")
def f(x):
    return g(x)

@torch.compile(backend="eager")
def other(x):
    return h(x)

print(f(torch.ones(3)))
print(other(torch.ones(3)))
