#: because: other code may hold
import torch


@torch.compile(backend="eager")
def total(x, parts):
    for n in parts:
        x = x + n
    return x


stream = iter([1, 2, 3])
total(torch.ones(3), stream)
