#: because: changes a tensor in place
import torch


@torch.compile(backend="eager")
def f(x):
    y = x.sin()
    return y.add_(1), y.sum().tolist()


f(torch.ones(3))
