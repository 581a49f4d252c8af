import torch

@torch.compile(backend="eager")
def f(x, n):
    return x * n

for n in (0, 1, 2, 3):
    f(torch.ones(3), n)
