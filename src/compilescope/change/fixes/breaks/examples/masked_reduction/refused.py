#: because: not reduced
import torch


def f(x):
    return x[x > 0].max() * 2


torch.compile(f, backend="eager")(torch.ones(3))
