"""NumPy's facts about a dtype are asked for an array, not for a dtype."""

import numpy as np
import torch


def f(x):
    y = x.numpy()
    return x + float(np.finfo(y).eps)  # breaks here


def inputs():
    return (torch.ones(3),)
