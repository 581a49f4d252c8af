#: because: one side is int64, the other float32
import torch


def f(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x * 0.5
    return y + y


torch.compile(f, backend="eager")(torch.ones(3, dtype=torch.int64))
