"""The function under `wrap_with_autocast` uses a tensor that it was not given."""

import torch

wrap = torch.ops.higher_order.wrap_with_autocast


def f(x):
    y = x + 1
    return wrap("cpu", None, False, False, lambda z: z + y, x)  # breaks here


def fixed(x):
    y = x + 1
    return wrap("cpu", None, False, False, lambda z, y: z + y, x, y)


def inputs():
    return (torch.ones(3),)
