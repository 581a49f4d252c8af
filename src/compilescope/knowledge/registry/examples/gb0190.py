"""`getattr` with a name that is a tensor."""

import torch


class Options:
    scale = 2


def f(x):
    return x * getattr(Options, x)  # breaks here


def inputs():
    return (torch.ones(3),)
