#: because: it is called in the middle of another function's work
import torch


def checked(x):
    if x.min() < 0:
        raise ValueError("negative")
    return x.sqrt()


@torch.compile(backend="eager")
def f(x):
    return checked(x) * 2


f(torch.ones(3))
