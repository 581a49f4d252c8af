"""`uniform_` with the keyword `from`, which is a reserved word of Python."""

import torch


def f(x):
    return torch.empty(3).uniform_(**{"from": 0.0, "to": 0.0}) + x  # breaks here


def fixed(x):
    return torch.empty(3).uniform_(0.0, 0.0) + x


def inputs():
    return (torch.ones(3),)
