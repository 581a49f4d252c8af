#: because: another number of items
import torch


def f(x, y):
    if x.sum() > y.sum():
        parts = [x, y * 2]
    else:
        parts = [y]
    return torch.cat(parts)


torch.compile(f, backend="eager")(torch.ones(3), torch.zeros(3))
