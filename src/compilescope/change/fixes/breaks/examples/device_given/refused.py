#: because: tensors of its own
import torch


def table():
    return torch.zeros(3)


def f(x):
    with torch.device("cpu"):
        return x + table()


torch.compile(f, backend="eager")(torch.ones(3))
