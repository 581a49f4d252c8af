"""The operator `wrap_with_autocast` is called with a keyword."""

import torch


def f(x):
    wrap = torch.ops.higher_order.wrap_with_autocast
    return wrap("cpu", None, False, False, torch.sin, x, scale=1)  # breaks here


def inputs():
    return (torch.ones(3),)
