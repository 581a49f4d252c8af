import copy

import torch


def f(x):
    y = x + 1
    kept = copy.deepcopy(x)  # before it changes
    y += kept
    return y, kept


torch.compile(f, backend="eager")(torch.ones(3))
