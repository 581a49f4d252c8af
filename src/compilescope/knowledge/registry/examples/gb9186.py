"""`torch.autograd.grad` inside the compiled function: Dynamo does not trace it by default."""

import torch


def f(x):
    y = (x * x).sum()
    return torch.autograd.grad(y, x)[0]  # breaks here


FIXED_CONFIG = {"trace_autograd_ops": True}


def inputs():
    return (torch.ones(3, requires_grad=True),)
