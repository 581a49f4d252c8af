import torch


@torch.compile(backend="eager")
def repeat(x, n):
    return x.expand(n, 3) * n


for n in (2, 3, 4):
    repeat(torch.ones(3), n)
