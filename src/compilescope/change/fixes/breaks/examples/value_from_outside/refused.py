#: because: on some paths
import os

import torch


def f(x, deep):
    y = x + 1
    if deep:
        y = y * len(os.getcwd())
    return y.sin()


torch.compile(f, backend="eager")(torch.ones(3), True)
