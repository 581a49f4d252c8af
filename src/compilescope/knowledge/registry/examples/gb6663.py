"""`autograd.grad` gets something that is no tensor."""

import torch

CONFIG = {"trace_autograd_ops": True}


def f(x):
    y = (x * x).sum()
    return torch.autograd.grad(y, 3)[0]  # breaks here


def inputs():
    return (torch.ones(3, requires_grad=True),)
