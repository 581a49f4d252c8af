#: because: safe to skip
import os

import torch


def f(x):
    os.getpid()
    return x + 1


torch.compile(f, backend="eager")(torch.ones(3))
