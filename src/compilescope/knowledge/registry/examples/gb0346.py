"""The `forward` of an autograd function is an object, no function."""

import torch


class Doubling:
    def __call__(self, ctx, x):
        return x * 2


class Double(torch.autograd.Function):
    forward = Doubling()

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


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
