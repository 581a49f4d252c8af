"""A nested tensor is made of one tensor, not of a list."""

import torch


def f(x):
    y = torch.nested.nested_tensor(x, layout=torch.jagged)  # breaks here
    return y.size(0) * x


def inputs():
    return (torch.ones(3),)
