"""A nested tensor of the strided layout is made inside the compiled function."""

import torch


def f(x):
    return torch.nested.nested_tensor([x * 2, x], layout=torch.strided)  # breaks here


def inputs():
    return (torch.ones(3),)
