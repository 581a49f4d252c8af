#: because: no environment variable
import torch


@torch.compile(backend="eager")
def f(x):
    if x.isnan().any():
        raise ValueError("there are NaNs")
    return x * 2


print(f(torch.ones(3)))
