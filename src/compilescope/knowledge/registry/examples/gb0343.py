"""The function of a `scan` gives one result, not the carried one and the new one."""

import torch
from torch._higher_order_ops.scan import scan


def f(x):
    return scan(lambda c, y: c + y, torch.zeros(3), x)  # breaks here


def fixed(x):
    return scan(lambda c, y: (c + y, (c + y).clone()), torch.zeros(3), x)


def inputs():
    return (torch.ones(2, 3),)
