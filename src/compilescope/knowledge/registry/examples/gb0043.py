"""A custom operator is not marked as fit for torch.compile, and a flag forbids such operators."""

import torch

CONFIG = {"only_allow_pt2_compliant_ops": True}

library = torch.library.Library("compilescope_gb0043", "DEF")
library.define("double(Tensor x) -> Tensor")
library.impl("double", lambda x: x * 2, "CompositeImplicitAutograd")


def f(x):
    return torch.ops.compilescope_gb0043.double(x) + 1  # breaks here


FIXED_CONFIG = {"only_allow_pt2_compliant_ops": False}


def inputs():
    return (torch.ones(3),)
