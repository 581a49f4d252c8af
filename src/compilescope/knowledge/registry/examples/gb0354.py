"""A name that is neither in the module nor a builtin."""

# ruff: noqa: F821

import torch


def f(x):
    return x * not_defined_anywhere  # breaks here


def inputs():
    return (torch.ones(3),)
