#: because: may not be a bool
import torch


def f(x, y):
    best = x.sum() or y.sum()
    return x * best


torch.compile(f, backend="eager")(torch.zeros(3), torch.ones(3))
