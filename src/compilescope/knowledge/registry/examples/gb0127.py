"""`resize_as_` changes the storage of a tensor in place."""

import torch


def f(x):
    y = torch.zeros(2)
    y.resize_as_(x)  # breaks here
    return y.zero_() + x


def fixed(x):
    return torch.zeros_like(x) + x


def inputs():
    return (torch.ones(4),)
