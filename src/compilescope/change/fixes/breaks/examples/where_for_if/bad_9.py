import torch


def f(x):
    y = x
    if x.min() > 0:
        y = x.log()
    return y * 2


torch.compile(f, backend="eager")(torch.ones(3))
