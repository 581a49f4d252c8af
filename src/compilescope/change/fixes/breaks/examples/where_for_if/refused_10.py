#: because: has changed in place
import torch


def f(x):
    x = x + 1
    if x.sum() > 0:
        x.mul_(2).add_(x.mean())
    return x


torch.compile(f, backend="eager")(torch.ones(3))
