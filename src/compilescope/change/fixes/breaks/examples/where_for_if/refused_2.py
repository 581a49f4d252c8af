#: because: calls print
import torch


def f(x):
    if x.sum() > 0:
        print("positive")
        x = x * 2
    return x + 1


torch.compile(f, backend="eager")(torch.ones(3))
