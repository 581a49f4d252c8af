#: because: which the function computes first
import torch


def f(x):
    y = x.sin()
    if y.sum() > 0:
        return y[:1]
    return y.double()


torch.compile(f, backend="eager")(torch.ones(3))
