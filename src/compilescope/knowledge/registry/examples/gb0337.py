"""The operator `strict_mode` is called with a keyword."""

import torch


def f(x):
    return torch.ops.higher_order.strict_mode(torch.sin, (x,), scale=1)  # breaks here


def inputs():
    return (torch.ones(3),)
