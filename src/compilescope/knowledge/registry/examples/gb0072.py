"""A function that changes the shape of an input in place."""

import torch


def f(x):
    torch.Tensor.unsqueeze_(x, 0)  # breaks here
    return x + 1


def fixed(x):
    return torch.unsqueeze(x, 0) + 1


def inputs():
    return (torch.ones(3),)
