"""A nested tensor of the strided layout comes into the compiled function."""

import torch


def f(x):
    return x * 2  # breaks here


def inputs():
    return (torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),)
