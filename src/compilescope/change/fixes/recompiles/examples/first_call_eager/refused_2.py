#: because: passed by the caller
import torch


@torch.compile(backend="eager")
def f(x, mask):
    return x * 2 if mask is None else x * mask


f(torch.ones(3), None)
f(torch.ones(3), torch.ones(3))
