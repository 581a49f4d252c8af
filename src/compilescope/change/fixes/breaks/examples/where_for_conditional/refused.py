#: because: used as one later
import torch


def f(x):
    steps = 3 if x.sum() > 0 else 1
    for _ in range(steps):
        x = x * 2
    return x


torch.compile(f, backend="eager")(torch.ones(3))
