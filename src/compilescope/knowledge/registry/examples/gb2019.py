"""An autograd function marks its input as dirty, where nothing needs a gradient."""

import torch

ALSO = ("GB0092",)


class Add(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.add_(1)
        ctx.mark_dirty(x)  # breaks here
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad


def f(x):
    return Add.apply(x * 1)


def fixed(x):
    return x + 1


def inputs():
    return (torch.ones(3),)
