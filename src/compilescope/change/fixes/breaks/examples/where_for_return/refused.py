#: because: the same shape
import torch


def f(x):
    if x.sum() > 0:
        return x.sum(0, keepdim=True)
    return x * 2


torch.compile(f, backend="eager")(torch.ones(3, 2))
