"""One of the operands of `torch.cond` is an object of yours."""

import torch


class Options:
    scale = 2


options = Options()


def add(x, options):
    return x + options.scale


def f(x):
    return torch.cond(x.sum() > 0, add, add, (x, options))  # breaks here


def inputs():
    return (torch.ones(3),)
