#: because: would drop it
import torch


def shown(y):
    print("step", y)
    return y


def f(x):
    return shown(x + 1) * 2


torch.compile(f, backend="eager")(torch.ones(3))
