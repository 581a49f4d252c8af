import torch


def f(x):
    y = x + 1
    return y * 2


torch.compile(f, backend="eager")(torch.ones(3))
