"""`autograd.grad` is called twice for one graph that the first call used up."""

import torch

CONFIG = {"trace_autograd_ops": True}
ALSO = ("GB0372", "GB4927")


def f(x):
    y = (x * x).sum()
    one = torch.autograd.grad(y, x)[0]
    two = torch.autograd.grad(y, x)[0]  # breaks here
    return one + two


def inputs():
    return (torch.ones(3, requires_grad=True),)
