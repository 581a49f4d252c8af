import torch


@torch.compile(backend="eager")
def f(x, w):
    return (x @ w).relu()


w = torch.ones(4, 4)
for size in (1, 5, 7, 0):
    x = torch.ones(size, 4)
    f(x, w)
