import torch


def f(x):
    y = x.clone()
    y.copy_(torch.where(y < 0, (torch.where(y < 0, y, 0).abs() + 1), y))
    return y


torch.compile(f, backend="eager")(torch.ones(3))
