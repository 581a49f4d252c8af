"""An autograd function has its own `jvp`."""

import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2

    @staticmethod
    def jvp(ctx, tangent):
        return tangent * 2


def f(x):
    return Double.apply(x)  # breaks here


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
