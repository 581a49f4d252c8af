#: because: NaN
import torch


def f(x):
    return x * int(x.sum())


torch.compile(f, backend="eager")(torch.ones(3))
