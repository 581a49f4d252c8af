#: because: no random number
import torch


@torch.compile(backend="eager")
def f(x, limit):
    if x.sum() < limit:
        return x
    return x * 2


f(torch.ones(3), 0)
