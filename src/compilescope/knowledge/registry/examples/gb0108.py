"""`retain_grad()` on a tensor made inside the compiled function."""

import torch


def f(x):
    y = x * 2
    y.retain_grad()  # breaks here
    return y + 1


def fixed(x):
    return x * 2 + 1


def inputs():
    return (torch.ones(3, requires_grad=True),)
