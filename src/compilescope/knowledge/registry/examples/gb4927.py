"""`autograd.grad` uses up the graph of a tensor that is returned."""

import torch

CONFIG = {"trace_autograd_ops": True}
FIXED_CONFIG = {"trace_autograd_ops": True}


def f(x):
    y = (x * x).sum()
    (grad,) = torch.autograd.grad(y, x)  # breaks here
    return y, grad


def fixed(x):
    y = (x * x).sum()
    (grad,) = torch.autograd.grad(y, x)
    return y.detach(), grad


def inputs():
    return (torch.ones(3, requires_grad=True),)
