#: because: Python uses the result
import torch


def f(x):
    largest = x.max().item()
    if largest > 2:
        x = x / largest
    return x


torch.compile(f, backend="eager")(torch.ones(3))
