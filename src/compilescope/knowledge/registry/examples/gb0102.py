"""The backward pass of an autograd function reads an attribute that is not known while tracing."""

import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2 if grad.layout == torch.strided else grad  # breaks here


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
