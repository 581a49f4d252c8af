#: because: sizes 0 and 1
import torch


@torch.compile(backend="eager")
def f(x):
    return x * 2


for size in (3, 5, 1):
    f(torch.ones(size))
