#: because: may end before it
import torch


def f(x, mask):
    if mask is None:
        return x + 1
    if mask.all():
        return x * 2
    return x[mask]


torch.compile(f, backend="eager")(torch.ones(3), torch.ones(3, dtype=torch.bool))
