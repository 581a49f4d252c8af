"""Shows a numpy function that Dynamo does not know."""

import numpy as np
import torch

#: graphs 3


@torch.compile(backend="eager")
def f(x):
    y = x + 1
    weights = np.polyfit([0.0, 1.0, 2.0], [0.0, 1.0, 4.0], 1)  #: break "np.polyfit(" attempted to trace numpy function unsupported by PyTorch #: category extension
    return y * float(weights[0])  #: break "float(" Data dependent operator #: category scalar-extraction


f(torch.ones(3))
