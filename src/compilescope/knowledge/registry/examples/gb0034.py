"""An `assert` is false already while tracing, and `fullgraph=True` forbids to stop before it."""

import torch

FULLGRAPH = True


def f(x):
    assert x.dim() == 2, "expected a matrix"  # breaks here
    return x + 1


def inputs():
    return (torch.ones(3),)
