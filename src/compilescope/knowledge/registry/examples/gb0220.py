"""`.data` of an input is assigned with another dtype."""

import torch


def f(x):
    x.data = torch.ones(3, dtype=torch.float64)  # breaks here
    return x + 1


def fixed(x):
    return torch.ones(3, dtype=torch.float64) + 1


def inputs():
    return (torch.ones(3),)
