#: because: control flow depends on the number in `n > 0`
import torch


def f(x):
    n = x.sum().item()
    if n > 0:
        x = x + 1
    return x * n


torch.compile(f, backend="eager")(torch.ones(3))
