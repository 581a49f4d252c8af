"""`out=` of an operator whose output size depends on data: there is no kernel for its fake form."""

import torch

CONFIG = {"capture_dynamic_output_shape_ops": True}
FIXED_CONFIG = {"capture_dynamic_output_shape_ops": True}


def f(x):
    kept = torch.empty(0)
    torch.masked_select(x, x > 0, out=kept)  # breaks here
    return kept + 1


def fixed(x):
    kept = torch.masked_select(x, x > 0)
    return kept + 1


def inputs():
    return (torch.tensor([-1.0, 1.0, 2.0]),)
