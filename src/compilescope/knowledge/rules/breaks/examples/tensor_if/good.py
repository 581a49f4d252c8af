import torch

@torch.compile(backend="eager")
def f(x):
    y = x.sin()
    return y, y.sum() > 0

@torch.compile(backend="eager")
def doubled(y):
    return y * 2 + 1

@torch.compile(backend="eager")
def lowered(y):
    return y - 1 + 1

y, positive = f(torch.ones(3))
print(doubled(y) if positive else lowered(y))
