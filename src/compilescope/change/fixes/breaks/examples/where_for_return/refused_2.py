#: because: from inside a loop
import torch


def f(x):
    for scale in (1.0, 2.0, 3.0):
        if (x * scale).sum() > 4:
            return x * scale
    return x


torch.compile(f, backend="eager")(torch.ones(3))
