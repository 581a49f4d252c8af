"""`nonzero` returns a row for each value other than zero: a size that depends on data."""

import torch


def f(x):
    return x.nonzero()  # breaks here


FIXED_CONFIG = {"capture_dynamic_output_shape_ops": True}


def inputs():
    return (torch.tensor([0.0, 1.0, 2.0]),)
