"""A Python number is called as if it were a function."""

import torch


def f(x):
    scale = 3
    return x * scale(2)  # breaks here


def inputs():
    return (torch.ones(3),)
