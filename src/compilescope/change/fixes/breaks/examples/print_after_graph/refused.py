#: because: drop the keyword
import torch


def f(x):
    y = x + 1
    print("step", y, end=" ")
    return y * 2


torch.compile(f, backend="eager")(torch.ones(3))
