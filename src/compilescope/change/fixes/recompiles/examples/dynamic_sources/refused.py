#: because: no name that the setting accepts
import torch

COUNTS = {(1, 2): 3}


@torch.compile(backend="eager")
def f(x):
    return x * COUNTS[1, 2]


for _ in range(4):
    f(torch.ones(3))
    COUNTS[1, 2] += 1
