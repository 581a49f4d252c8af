"""A parameter is made of a list."""

import torch


def f(x):
    w = torch.nn.Parameter([1.0])  # breaks here
    return x * w


def inputs():
    return (torch.ones(3),)
