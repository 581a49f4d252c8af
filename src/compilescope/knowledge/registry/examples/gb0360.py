"""`guard_scalar` is asked for a tensor."""

import torch
from torch.fx.experimental.symbolic_shapes import guard_scalar


def f(x):
    return x + guard_scalar(x)  # breaks here


def inputs():
    return (torch.ones(3),)
