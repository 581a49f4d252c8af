"""`.numpy()`, while the tracing of NumPy is switched off."""

import torch

CONFIG = {"trace_numpy": False}
FIXED_CONFIG = {"trace_numpy": True}


def f(x):
    y = x.numpy()  # breaks here
    return x + y.shape[0]


def inputs():
    return (torch.ones(3),)
