"""A leaf of what an `associative_scan` goes over is no tensor."""

import torch


def add(a, b):
    return (a + b,)


def f(x):
    return torch.ops.higher_order.associative_scan(add, (x, 1), ())  # breaks here


def inputs():
    return (torch.ones(3),)
