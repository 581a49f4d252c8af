"""The function under `wrap_with_set_grad_enabled` uses a tensor that it was not given."""

import torch

wrap = torch.ops.higher_order.wrap_with_set_grad_enabled


def f(x):
    y = x + 1
    return wrap(False, lambda z: z + y, x)  # breaks here


def fixed(x):
    y = x + 1
    return wrap(False, lambda z, y: z + y, x, y)


def inputs():
    return (torch.ones(3),)
