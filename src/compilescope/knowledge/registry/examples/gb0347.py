"""An autograd function changes whether gradients that are not needed are made."""

import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx._materialize_non_diff_grads = False
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def f(x):
    return Double.apply(x)  # breaks here


def fixed(x):
    return x * 2


def inputs():
    return (torch.ones(3, requires_grad=True),)
