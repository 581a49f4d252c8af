"""The operator `scan` is called by itself, without what the function `scan` puts around yours."""

import torch


def add(a, b):
    return (a + b,)


def f(x):
    return torch.ops.higher_order.scan(add, (x,), (x,), ())  # breaks here


def inputs():
    return (torch.ones(3),)
