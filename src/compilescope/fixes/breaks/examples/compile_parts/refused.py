#: because: a grad mode is set around the whole function
import gc

import torch


@torch.compile(backend="eager")
@torch.no_grad()
def f(x):
    y = (x + 1).sin()
    gc.collect()
    z = y * 2
    return z.cos()


f(torch.ones(3))
