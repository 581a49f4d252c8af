"""`resize_` changes the storage of a tensor in place."""

import torch


def f(x):
    y = torch.zeros(2)
    y.resize_(4)  # breaks here
    return y.zero_() + x


def fixed(x):
    y = torch.zeros(4)
    return y + x


def inputs():
    return (torch.ones(4),)
