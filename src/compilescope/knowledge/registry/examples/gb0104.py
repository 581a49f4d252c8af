"""`grad_fn` is autograd's own record, which does not exist while tracing."""

import torch


def f(x):
    y = x * 2
    if y.grad_fn is not None:  # breaks here
        y = y + 1
    return y


def fixed(x):
    y = x * 2
    if y.requires_grad:
        y = y + 1
    return y


def inputs():
    return (torch.ones(3, requires_grad=True),)
