"""The operator `wrap_with_set_grad_enabled` is called with a keyword."""

import torch

wrap = torch.ops.higher_order.wrap_with_set_grad_enabled


def f(x):
    return wrap(False, torch.sin, x, scale=1)  # breaks here


def inputs():
    return (torch.ones(3),)
