"""`repr` of a nested function that holds a tensor."""

import torch


def f(x):
    y = x + 1

    def late():
        return y

    return x + (len(repr(late)) > 0)  # breaks here


def fixed(x):
    return x + True


def inputs():
    return (torch.ones(3),)
