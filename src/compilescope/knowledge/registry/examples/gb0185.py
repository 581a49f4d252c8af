"""A NumPy array of Python objects comes into the compiled function."""

import numpy as np
import torch


def f(x, names):
    return x + len(names)  # breaks here


def inputs():
    return torch.ones(3), np.array(["a", None], dtype=object)
