"""The function of an `associative_scan` gives nothing."""

import torch


def nothing(a, b):
    return ()


def f(x):
    return torch.ops.higher_order.associative_scan(nothing, (x,), ())  # breaks here


def inputs():
    return (torch.ones(3),)
