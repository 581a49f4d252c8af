"""A NumPy function, while the tracing of NumPy is switched off."""

import numpy as np
import torch

CONFIG = {"trace_numpy": False}


def f(x):
    return x + float(np.sum(np.ones(3)))  # breaks here


FIXED_CONFIG = {"trace_numpy": True, "capture_scalar_outputs": True}


def inputs():
    return (torch.ones(3),)
