"""`is_inference()` asks a tensor for a state that tracing takes away."""

import torch


def f(x):
    if x.is_inference():  # breaks here
        return x + 1
    return x - 1


def fixed(x):
    return x - 1


def inputs():
    return (torch.ones(3),)
