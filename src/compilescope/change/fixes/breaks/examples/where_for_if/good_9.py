import torch


def f(x):
    y = x
    taken = x.min() > 0
    y = torch.where(taken, torch.where(taken, x, 1).log(), y)
    return y * 2


torch.compile(f, backend="eager")(torch.ones(3))
