"""`torch.cond` is called with an argument missing."""

import torch


def f(x):
    return torch.ops.higher_order.cond(x.sum() > 0, torch.sin, torch.cos)  # breaks here


def fixed(x):
    return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))


def inputs():
    return (torch.ones(3),)
