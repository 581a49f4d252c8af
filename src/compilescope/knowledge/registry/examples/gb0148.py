"""An operation that changes the shape of an input in place."""

import torch


def f(x):
    x.unsqueeze_(0)  # breaks here
    return x + 1


def fixed(x):
    return x.unsqueeze(0) + 1


def inputs():
    return (torch.ones(3),)
