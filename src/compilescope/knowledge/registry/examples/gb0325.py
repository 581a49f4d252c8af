"""The operator `map` is called with keywords."""

import torch


def f(x):
    return torch.ops.higher_order.map_impl(torch.sin, xs=(x,), args=())  # breaks here


def inputs():
    return (torch.ones(3),)
