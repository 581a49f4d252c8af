"""The operator `out_dtype` is called with a keyword."""

import torch


def f(x):
    add = torch.ops.aten.add.Tensor
    return torch.ops.higher_order.out_dtype(add, torch.float64, x, other=x)  # breaks here


def inputs():
    return (torch.ones(3),)
