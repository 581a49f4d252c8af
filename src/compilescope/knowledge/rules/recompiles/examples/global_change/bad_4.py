import torch

DOUBLE = True

@torch.compile(backend="eager")
def f(x):
    return x * 2 if DOUBLE else x + 1

print(f(torch.ones(3)))
DOUBLE = False
print(f(torch.ones(3)))
