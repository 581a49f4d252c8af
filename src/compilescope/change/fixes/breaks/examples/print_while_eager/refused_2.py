#: because: not part of a print
import torch


def print(*values):
    return values[0].max().item()


def f(x):
    print(x)
    return x * 2


torch.compile(f, backend="eager")(torch.ones(3))
