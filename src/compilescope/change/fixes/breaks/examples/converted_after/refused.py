#: because: `y \* n` needs `n`, which is read before it
import torch


@torch.compile(backend="eager")
def f(x):
    y = x.sin()
    n = y.sum().item()
    return y * n, n


f(torch.ones(3))
