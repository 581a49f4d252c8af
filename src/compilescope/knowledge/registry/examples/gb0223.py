"""`torch.compile` is called inside with more than the function."""

import torch


def double(x):
    return x * 2


def f(x):
    return torch.compile(double, True)(x)  # breaks here


def inputs():
    return (torch.ones(3),)
