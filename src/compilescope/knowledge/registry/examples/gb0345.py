"""The operator `strict_mode` is called with a list within its arguments."""

import torch


def f(x):
    return torch.ops.higher_order.strict_mode(lambda parts: parts[0] + 1, ([x],))  # breaks here


def inputs():
    return (torch.ones(3),)
