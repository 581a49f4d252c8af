"""Whether autocast is on is given as a tensor."""

import torch


def f(x):
    wrap = torch.ops.higher_order.wrap_with_autocast
    return wrap("cpu", None, x, False, torch.sin, x)  # breaks here


def inputs():
    return (torch.ones(3),)
