import copy

import torch


def f(x):
    y = x + 1
    kept = x.detach().clone()  # before it changes
    y += kept
    return y, kept


torch.compile(f, backend="eager")(torch.ones(3))
