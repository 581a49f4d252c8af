#: because: the call takes no tensor
import gc

import torch


def f(x):
    gc.collect()
    return x + 1


torch.compile(f, backend="eager")(torch.ones(3))
