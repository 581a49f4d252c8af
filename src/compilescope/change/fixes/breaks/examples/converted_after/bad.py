import torch


@torch.compile(backend="eager")
def f(x):
    y = x.sin()
    return y, (y * 2).tolist()


f(torch.ones(3))
