#: because: the branch contains `x = x \* 2`
import torch


@torch.compile(backend="eager")
def f(x):
    if x.sum() > 0:
        print("positive")
        x = x * 2
    return x


f(torch.ones(3))
