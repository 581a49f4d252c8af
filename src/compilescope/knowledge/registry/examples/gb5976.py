"""The addresses of two tensors are compared."""

import torch


def f(x, y):
    if x.data_ptr() == y.data_ptr():  # breaks here
        return x + 1
    return x + y


def fixed(x, y):
    if x is y:
        return x + 1
    return x + y


def inputs():
    return torch.ones(3), torch.ones(3)
