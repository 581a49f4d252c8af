#: because: more than once
import torch


@torch.compile(backend="eager")
def total(x, parts):
    for n in parts:
        x = x + n
    for n in parts:  # nothing is left
        x = x * n
    return x


total(torch.ones(3), (n for n in range(4)))
