"""`tolist()` of floats makes Python numbers that are not known while tracing."""

import torch

CONFIG = {"capture_scalar_outputs": True}


def f(x):
    values = x.tolist()  # breaks here
    return x * values[0]


def fixed(x):
    return x * x[0]


def inputs():
    return (torch.tensor([2.0, 3.0]),)
