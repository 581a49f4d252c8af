import torch


def f(x):
    return x[x > 0].sum() * 2  # the positive ones


torch.compile(f, backend="eager")(torch.ones(3))
