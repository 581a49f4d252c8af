"""A random generator is seeded inside the compiled function."""

import torch

generator = torch.Generator()


def f(x):
    y = x * 2
    generator.manual_seed(1)  # breaks here
    return y + 1


def fixed(x):
    return x * 2 + 1


def inputs():
    return (torch.ones(3),)
