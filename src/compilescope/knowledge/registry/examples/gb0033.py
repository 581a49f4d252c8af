"""`torch.equal` returns a Python bool that is read from the data of the tensors."""

import torch


def f(x, y):
    same = torch.equal(x, y)  # breaks here
    return x + same


def fixed(x, y):
    same = (x == y).all()
    return x + same


def inputs():
    return torch.ones(3), torch.ones(3)
