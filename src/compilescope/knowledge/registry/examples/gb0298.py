"""NumPy's random numbers are to stay NumPy's own, so they cannot be part of the graph."""

import numpy as np
import torch

CONFIG = {"use_numpy_random_stream": True}
FIXED_CONFIG = {"use_numpy_random_stream": False}


def f(x):
    return x + torch.from_numpy(np.random.uniform(1.0, 1.0, 3))  # breaks here


def inputs():
    return (torch.ones(3),)
