#: because: not known to return the same
import os

import torch


def f(x):
    return x + len(os.getcwd())


torch.compile(f, backend="eager")(torch.ones(3))
