#: because: it is in the function that is compiled itself
import gc

import torch


@torch.compile(backend="eager")
def f(x):
    gc.collect()
    return x + 1


f(torch.ones(3))
