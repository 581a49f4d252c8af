#: because: Python number is needed
import torch


def f(x):
    shown = x.mean().item()
    print(shown)
    return x * 2, shown


torch.compile(f, backend="eager")(torch.ones(3))
