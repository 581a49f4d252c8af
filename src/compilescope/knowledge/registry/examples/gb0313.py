"""The branches of `torch.cond` give results of different form."""

import torch


def f(x):
    return torch.cond(x.sum() > 0, lambda x: (x + 1,), lambda x: [x - 1], (x,))  # breaks here


def fixed(x):
    return torch.cond(x.sum() > 0, lambda x: (x + 1,), lambda x: (x - 1,), (x,))


def inputs():
    return (torch.ones(3),)
