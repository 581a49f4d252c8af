"""A tensor made inside gets `requires_grad_()`: on an output the effect would be lost."""

import torch

FULLGRAPH = True


def f(x):  # breaks here
    y = torch.zeros(3)
    y.requires_grad_()
    return y * x


def inputs():
    return (torch.ones(3),)
