#: because: `gc.collect` may do more
import gc

import torch


def f(x):
    y = x.sin()
    gc.collect()
    return y.cos()


torch.compile(f, backend="eager")(torch.ones(3))
