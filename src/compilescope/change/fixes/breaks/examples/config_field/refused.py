#: because: no config field
import torch


@torch.compile(backend="eager")
def f(x):
    n = (x == 0).sum().item()
    return x * n


print(f(torch.ones(3)))
