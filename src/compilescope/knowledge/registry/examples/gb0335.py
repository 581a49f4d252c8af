"""The operator `hints_wrapper` is called without hints."""

import torch


def f(x):
    return torch.ops.higher_order.hints_wrapper(torch.sin, (x,), {})  # breaks here


def inputs():
    return (torch.ones(3),)
