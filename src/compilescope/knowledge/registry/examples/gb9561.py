"""An object is repeated in place with `*=`, which is written in C."""

import array

import torch


def f(x, values):
    values *= 2  # breaks here
    return x + 1


def fixed(x, values):
    return x + 1


def inputs():
    return torch.ones(3), array.array("i", [1, 2])
