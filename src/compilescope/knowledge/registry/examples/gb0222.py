"""A set of tensors comes into the compiled function."""

import torch


def f(tensors):
    total = torch.zeros(3)
    for each in tensors:  # breaks here
        total = total + each
    return total


def inputs():
    return ({torch.ones(3), torch.zeros(3)},)
