"""An autograd backward calls a method of the gradient whose result tracing does not know."""

import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return -grad * 2 if torch.Tensor.is_neg(grad) else grad * 2  # breaks here


def f(x):
    return Double.apply(x)


class PlainDouble(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def fixed(x):
    return PlainDouble.apply(x)


def inputs():
    return (torch.ones(3, requires_grad=True),)
