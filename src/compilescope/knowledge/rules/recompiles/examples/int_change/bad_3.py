import torch

@torch.compile(backend="eager")
def f(x, n):
    for i in range(n):
        x = x + i
    return x

for n in (2, 3, 4):
    f(torch.ones(3), n)
