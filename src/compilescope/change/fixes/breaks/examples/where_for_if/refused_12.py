#: because: for more than its truth
import torch


def f(x, flag):
    big = x.max() > 3 or flag
    if big:
        x = x / 2
    return x + 1, big


torch.compile(f, backend="eager")(torch.ones(3), False)
