#: because: part of an argument
import torch


@torch.compile(backend="eager")
def f(xs):
    return xs[0] * 2


f([torch.ones(3, 4)])
f([torch.ones(4, 3).t()])
