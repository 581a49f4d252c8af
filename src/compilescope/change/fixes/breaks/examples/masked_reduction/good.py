import torch


def f(x):
    return torch.where(x > 0, x, 0).sum() * 2  # the positive ones


torch.compile(f, backend="eager")(torch.ones(3))
