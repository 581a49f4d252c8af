"""The parameters of attention are asked for an attribute that they do not have."""

import torch
from torch.backends.cuda import SDPAParams

ALSO = ("GB0007",)


def f(x):
    params = SDPAParams(x, x, x, None, 0.0, False, False)
    return x + params.scale  # breaks here


def inputs():
    return (torch.ones(3),)
