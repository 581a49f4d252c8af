"""The operands of `torch.cond` are no tuple."""

import torch


def f(x):
    return torch.cond(x.sum() > 0, torch.sin, torch.cos, x)  # breaks here


def fixed(x):
    return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))


def inputs():
    return (torch.ones(3),)
