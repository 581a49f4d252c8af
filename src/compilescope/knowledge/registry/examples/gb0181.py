"""The gradient of a tensor has another dtype than the tensor itself."""

import torch


def f(x):
    return x * 2  # breaks here


def inputs():
    x = torch.ones(3, requires_grad=True)
    x.grad = torch.ones(3)
    x.data = x.data.double()
    return (x,)
