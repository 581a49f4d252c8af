"""Two methods of a tensor are compared."""

import torch


def f(x):
    if x.sin == x.cos:  # breaks here
        return x + 1
    return x - 1


def fixed(x):
    if torch.sin is torch.cos:
        return x + 1
    return x - 1


def inputs():
    return (torch.ones(3),)
