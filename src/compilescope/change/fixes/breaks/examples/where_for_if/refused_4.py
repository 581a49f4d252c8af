#: because: is a Python value
import torch


def f(x):
    if x.sum() > 0:
        kind = "up"
    else:
        kind = "down"
    return x * len(kind)


torch.compile(f, backend="eager")(torch.ones(3))
