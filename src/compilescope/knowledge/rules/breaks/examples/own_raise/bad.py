import torch


@torch.compile(backend="eager")
def f(x):
    if x.shape[0] > 3:
        raise ValueError("too many rows")
    return x + 1


try:
    f(torch.ones(5))
except ValueError as error:
    print(error)
