"""A branch of `torch.cond` gives None besides a tensor."""

import torch


def yes(x):
    return x + 1, None


def no(x):
    return x - 1, None


def f(x):
    return torch.cond(x.sum() > 0, yes, no, (x,))  # breaks here


def fixed(x):
    return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,)), None


def inputs():
    return (torch.ones(3),)
