"""A function is called with an argument too many."""

import torch


def scale(x):
    return x * 2


def f(x):
    return scale(x, 3)  # breaks here


def inputs():
    return (torch.ones(3),)
