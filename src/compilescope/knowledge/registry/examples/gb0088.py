"""An exception leaves the compiled function: Dynamo lets plain Python raise it."""

import torch


def f(x):
    if x.dim() != 2:
        raise ValueError("expected a matrix")  # breaks here
    return x + 1


def inputs():
    return (torch.ones(3),)
