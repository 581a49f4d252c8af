"""Shows an autograd function whose forward prints."""

import torch

#: graphs 3


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        print("forward")  #: break "print(" Failed to trace builtin operator #: category logging
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


@torch.compile(backend="eager")
def f(x):
    y = x + 1
    y = Double.apply(y)
    return y.relu()


f(torch.ones(3, requires_grad=True)).sum().backward()
