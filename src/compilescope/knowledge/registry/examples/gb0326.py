"""The operator `map` goes over a number, which has no rows."""

import torch


def f(x):
    return torch.ops.higher_order.map_impl(torch.sin, (x,), ())  # breaks here


def inputs():
    return (torch.tensor(1.0),)
