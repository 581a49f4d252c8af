#: because: no module is known to be called there
import gc

import torch


@torch.compile(backend="eager")
def f(x):
    gc.collect()
    return x + 1


f(torch.ones(3))
