from copy import copy

import torch


def f(x):
    y = x.sin()
    return copy(y) + 1


torch.compile(f, backend="eager")(torch.ones(3))
