"""`torch.from_numpy`, while the tracing of NumPy is switched off."""

import numpy as np
import torch

CONFIG = {"trace_numpy": False}
FIXED_CONFIG = {"trace_numpy": True}


def f(x, y):
    return x + torch.from_numpy(y)  # breaks here


def inputs():
    return torch.ones(3), np.ones(3)
