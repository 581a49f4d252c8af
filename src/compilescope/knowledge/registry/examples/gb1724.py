"""`autograd.grad` gets a dict whose keys are tensors."""

import torch

CONFIG = {"trace_autograd_ops": True}


def f(x):
    y = (x * x).sum()
    return torch.autograd.grad(y, {x: x})  # breaks here


def inputs():
    return (torch.ones(3, requires_grad=True),)
