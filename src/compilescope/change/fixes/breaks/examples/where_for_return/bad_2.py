#: note: What the early value is made of changes later, so it is kept.
import torch


def f(x, y):
    if not y.any():
        return x * 0.5
    x = x + y
    z = x.sin()
    return z * 2


torch.compile(f, backend="eager")(torch.ones(3), torch.ones(3))
