"""The function of an `associative_scan` gives a tensor where it took a tuple."""

import torch

scan = torch.ops.higher_order.associative_scan


def add(a, b):
    return (a + b,)


def f(x):
    return scan(torch.add, (x,), ())  # breaks here


def fixed(x):
    return scan(add, (x,), ())


def inputs():
    return (torch.ones(3),)
