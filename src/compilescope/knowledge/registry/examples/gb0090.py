"""A custom operator has a CPU kernel and no fake one: its output cannot be foretold."""

import torch

library = torch.library.Library("compilescope_gb0090", "DEF")
library.define("double(Tensor x) -> Tensor")
library.impl("double", lambda x: x * 2, "CPU")


def f(x):
    return torch.ops.compilescope_gb0090.double(x) + 1  # breaks here


def inputs():
    return (torch.ones(3),)
