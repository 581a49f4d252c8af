#: because: ValueError is caught at program.py:12
import torch


def f(x):
    if (x < 0).any():
        raise ValueError("negative")
    return x + 1


try:
    torch.compile(f, backend="eager")(torch.ones(3))
except ValueError:
    pass
