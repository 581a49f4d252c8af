"""Two lists of tensors are compared, which needs the values of the tensors."""

import torch


def f(x, y):
    same = [x] == [y]  # breaks here
    return x + same


def fixed(x, y):
    return x + (x == y)


def inputs():
    return torch.tensor(1.0), torch.tensor(1.0)
