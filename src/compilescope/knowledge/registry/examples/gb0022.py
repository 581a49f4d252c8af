"""What stands in `sys.modules` under a name is no module."""

import sys
from types import SimpleNamespace

import torch

sys.modules["settings_of_example"] = SimpleNamespace(scale=2)


def f(x):
    import settings_of_example  # breaks here

    return x * settings_of_example.scale


def inputs():
    return (torch.ones(3),)
