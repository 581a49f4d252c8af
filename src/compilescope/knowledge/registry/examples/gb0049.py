"""An operator is called with arguments that fit none of its overloads."""

import torch


def f(x):
    return torch.ops.aten.add(x, "one")  # breaks here


def inputs():
    return (torch.ones(3),)
