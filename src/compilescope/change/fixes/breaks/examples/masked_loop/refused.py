#: because: where the loop stopped
import torch


def f(x):
    for turn in range(4):
        if x.max() < 1:
            break
        x = x / 2
    return x * turn


torch.compile(f, backend="eager")(torch.full((3,), 9.0))
