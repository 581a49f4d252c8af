#: because: different numbers
import torch


@torch.compile(backend="eager")
def f(x):
    return x * 2


f(torch.ones(3))
f(torch.ones(3, dtype=torch.float64))
