"""A tensor made inside gets `requires_grad_()`: on an output the effect would be lost."""

import torch


def f(x):
    y = torch.zeros(3)
    y.requires_grad_()  # breaks here
    return y * x


def inputs():
    return (torch.ones(3),)
