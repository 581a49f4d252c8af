"""`wrap_triton` is called with too many arguments."""

import torch


def f(x):
    return torch.library.wrap_triton(x, 1)  # breaks here


def inputs():
    return (torch.ones(3),)
