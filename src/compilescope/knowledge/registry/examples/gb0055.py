"""An object of yours is given to a torch function, and Dynamo cannot put it into the graph."""

import torch


class Size:
    def __index__(self):
        return 3


def f(x):
    return x + torch.zeros(Size())  # breaks here


def fixed(x):
    return x + torch.zeros(3)


def inputs():
    return (torch.ones(3),)
