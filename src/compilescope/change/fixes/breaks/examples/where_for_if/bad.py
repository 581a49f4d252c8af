import torch


def f(x):
    y = x.sin()
    # Which way?
    if y.sum() > 0:
        y = y * 2  # double
    else:
        y = y - 1
    return y + 1


torch.compile(f, backend="eager")(torch.ones(3))
