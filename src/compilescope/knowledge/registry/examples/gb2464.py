"""An autograd function marks its input as dirty and does not return it."""

import torch

ALSO = ("GB2019", "GB0092")


class Add(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.add_(1)
        ctx.mark_dirty(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def f(x):
    return Add.apply(x * 1)  # breaks here


def fixed(x):
    return (x + 1) * 2


def inputs():
    return (torch.ones(3, requires_grad=True),)
