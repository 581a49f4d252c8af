import torch


def is_flat(x, y):
    return (x.std() < 1e-3) | (y.std() < 1e-3)


def f(x, y):
    return x * y + is_flat(x, y)


torch.compile(f, backend="eager")(torch.ones(3), torch.arange(3.0))
