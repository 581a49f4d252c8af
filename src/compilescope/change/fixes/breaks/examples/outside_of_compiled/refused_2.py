#: because: part of another function's graph
import gc

import torch


def tidy(x):
    gc.collect()
    return x + 1


def f(x):
    return tidy(x) * 2


torch.compile(f, backend="eager")(torch.ones(3))
