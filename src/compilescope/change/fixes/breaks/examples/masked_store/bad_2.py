import torch


def f(x):
    y = x.clone()
    y[y < 0] = y[y < 0].abs() + 1
    return y


torch.compile(f, backend="eager")(torch.ones(3))
