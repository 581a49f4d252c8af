#: because: both before and after
import gc

import torch


def f(x):
    y = (x + 1).sin()
    gc.collect()
    z = y * 2
    return z.cos()


torch.compile(f, backend="eager")(torch.ones(3))
