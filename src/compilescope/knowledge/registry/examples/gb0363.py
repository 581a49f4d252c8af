"""A random generator is made inside the compiled function."""

import torch


def f(x):
    y = x * 2
    generator = torch.Generator()  # breaks here
    return y + 1, generator


def inputs():
    return (torch.ones(3),)
