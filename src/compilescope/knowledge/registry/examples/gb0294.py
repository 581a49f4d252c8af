"""A NumPy function that PyTorch has no counterpart for."""

import numpy as np
import torch


def f(x):
    y = np.interp(x.numpy(), np.array([0.0, 1.0]), np.array([0.0, 2.0]))  # breaks here
    return torch.from_numpy(y) + 1


def fixed(x):
    return (x.clamp(0, 1) * 2).double() + 1


def inputs():
    return (torch.tensor([0.5, 1.0]),)
