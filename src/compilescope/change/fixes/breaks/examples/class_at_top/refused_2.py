#: because: all calls would share
import torch


def f(x):
    class Kept:
        seen = []

    Kept.seen.append(1)
    return x + len(Kept.seen)


torch.compile(f, backend="eager")(torch.ones(3))
