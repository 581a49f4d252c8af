"""An item is assigned in an object whose items are kept in C."""

import array

import torch


def f(x, values):
    values[0] = 3  # breaks here
    return x + 1


def fixed(x, values):
    return x + 1


def inputs():
    return torch.ones(3), array.array("i", [1, 2])
