"""A constant of the pytree is made inside and given to a `nonstrict_trace` function."""

import torch
from torch.utils import _pytree as pytree


class Scale:
    def __init__(self, by):
        self.by = by

    def __eq__(self, other):
        return self.by == other.by

    def __hash__(self):
        return hash(self.by)


pytree.register_constant(Scale)


@torch._dynamo.nonstrict_trace
def scaled(x, scale):
    return x * scale.by


def f(x):
    return scaled(x, Scale(2))  # breaks here


two = Scale(2)


def fixed(x):
    return scaled(x, two)


def inputs():
    return (torch.ones(3),)
