import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

for size in (3, 5, 7):
    print(f(torch.ones(size)))
