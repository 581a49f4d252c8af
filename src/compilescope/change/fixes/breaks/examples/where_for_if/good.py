import torch


def f(x):
    y = x.sin()
    # Which way?
    # double
    y = torch.where(y.sum() > 0, y * 2, y - 1)
    return y + 1


torch.compile(f, backend="eager")(torch.ones(3))
