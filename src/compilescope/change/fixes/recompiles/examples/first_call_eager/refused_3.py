#: because: no call prepares it
import torch

DOUBLE = False


@torch.compile(backend="eager")
def f(x):
    return x * 2 if DOUBLE else x + 1


f(torch.ones(3))
DOUBLE = True
f(torch.ones(3))
