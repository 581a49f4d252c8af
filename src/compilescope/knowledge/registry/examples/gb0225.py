"""A tensor made with `requires_grad=True` inside the compiled function would be a new leaf."""

import torch


def f(x):
    weight = torch.ones(3, requires_grad=True)  # breaks here
    return (x * weight).detach()


def fixed(x):
    weight = torch.ones(3)
    return (x * weight).detach()


def inputs():
    return (torch.ones(3),)
