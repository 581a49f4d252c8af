"""A local variable is read before it has a value."""

import torch


def f(x):
    if x.dim() == 2:
        scale = 2
    return x * scale  # breaks here


def inputs():
    return (torch.ones(3),)
