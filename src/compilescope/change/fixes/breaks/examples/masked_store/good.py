import torch


def f(x):
    y = x.clone()
    y.copy_(torch.where(y > 0, y * 2, y))  # louder
    return y


torch.compile(f, backend="eager")(torch.ones(3))
