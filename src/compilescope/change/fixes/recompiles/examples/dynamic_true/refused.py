#: because: options from a dict
import torch

options = {"backend": "eager"}


@torch.compile(**options)
def f(x, n):
    return x * n


for n in (2, 3, 4):
    f(torch.ones(3), n)
