"""An item is read of an object whose items are kept in C."""

import array

import torch


def f(x, values):
    return x + values[0]  # breaks here


def inputs():
    return torch.ones(3), array.array("i", [1, 2])
