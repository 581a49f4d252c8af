"""`repr` of a thing that exists while tracing only."""

import torch


def f(x):
    name = repr(x.sin)  # breaks here
    return x + (len(name) > 0)


def fixed(x):
    return x + True


def inputs():
    return (torch.ones(3),)
