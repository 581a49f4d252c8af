"""The keys of a dict come into the compiled function, and they are no plain constants."""

import torch


class Name:
    pass


def f(x, names):
    return x + len(names)  # breaks here


def inputs():
    return torch.ones(3), {Name(): 1}.keys()
