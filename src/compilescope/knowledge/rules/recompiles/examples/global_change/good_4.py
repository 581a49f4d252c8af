import torch

DOUBLE = True

@torch.compile(backend="eager")
def double(x):
    return x * 2

@torch.compile(backend="eager")
def raised(x):
    return x + 1

def f(x):
    return double(x) if DOUBLE else raised(x)

print(f(torch.ones(3)))
DOUBLE = False
print(f(torch.ones(3)))
