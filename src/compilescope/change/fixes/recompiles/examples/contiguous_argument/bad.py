import torch


@torch.compile(backend="eager")
def f(x):
    return x * 2


f(torch.ones(3, 4))
f(torch.ones(4, 3).t())
