"""An object is repeated with `*`, which is written in C."""

import array

import torch


def f(x, values):
    both = values * 2  # breaks here
    return x + 1, both


def inputs():
    return torch.ones(3), array.array("i", [1, 2])
