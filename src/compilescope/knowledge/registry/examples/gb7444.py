"""A hook asks whether the gradient is contiguous, which is not known while tracing."""

import torch


def double(grad):
    return grad * 2 if grad.is_contiguous() else grad.contiguous() * 2


def f(x):
    y = x * 3
    y.register_hook(double)  # breaks here
    return y + 1


def plain_double(grad):
    return grad * 2


def fixed(x):
    y = x * 3
    y.register_hook(plain_double)
    return y + 1


def inputs():
    return (torch.ones(3, requires_grad=True),)
