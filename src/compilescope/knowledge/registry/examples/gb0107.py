"""`Tensor.random_` draws numbers in place; Dynamo has no rule for it."""

import torch


def f(x):
    noise = torch.empty(3).random_(0, 1)  # breaks here
    return x + noise


def fixed(x):
    noise = torch.randint(0, 1, (3,))
    return x + noise


def inputs():
    return (torch.ones(3),)
