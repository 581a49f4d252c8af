#: because: Python number is needed
import torch


def f(x):
    total = x.sum().item()
    return x * 2, total


torch.compile(f, backend="eager")(torch.ones(3))
