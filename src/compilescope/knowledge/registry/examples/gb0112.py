"""A torch function is called with an argument that it does not take."""

import torch


def f(x):
    return torch.sum(x, keep=True)  # breaks here


def inputs():
    return (torch.ones(3),)
