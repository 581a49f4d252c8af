"""Two context managers of torch are compared, which exist while tracing only."""

import torch


def f(x):
    if torch.no_grad() == torch.no_grad():  # breaks here
        return x + 1
    return x - 1


def fixed(x):
    return x - 1


def inputs():
    return (torch.ones(3),)
