#: because: neither 0 nor 1
import torch


@torch.compile(backend="eager")
def f(x):
    return x * 2


for size in (3, 5):
    x = torch.ones(size)
    f(x)
