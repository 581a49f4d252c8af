"""A parameter is made inside the compiled function."""

import torch


def f(x):
    w = torch.nn.Parameter(torch.ones(3))  # breaks here
    return (x * w).detach()


def fixed(x):
    w = torch.ones(3)
    return (x * w).detach()


def inputs():
    return (torch.ones(3),)
