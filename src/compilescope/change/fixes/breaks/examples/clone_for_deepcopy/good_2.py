from copy import copy

import torch


def f(x):
    y = x.sin()
    return y.detach() + 1


torch.compile(f, backend="eager")(torch.ones(3))
