"""`requires_grad` of a parameter is a tensor."""

import torch


def f(x, needed):
    w = torch.nn.Parameter(x, requires_grad=needed)  # breaks here
    return (x * w).detach()


def fixed(x, needed):
    w = torch.nn.Parameter(x)
    return (x * w).detach()


def inputs():
    return torch.ones(3), torch.tensor(True)
