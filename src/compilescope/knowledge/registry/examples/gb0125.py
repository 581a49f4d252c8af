"""`requires_grad_()` changes an input of the compiled function."""

import torch


def f(x):
    x.requires_grad_()  # breaks here
    return x * 2


def inputs():
    return (torch.ones(3),)
