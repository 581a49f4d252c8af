"""A pytree node with a context that is no constant is given to a `nonstrict_trace` function."""

import torch
from torch.utils import _pytree as pytree


class Options:
    pass


class Pair:
    def __init__(self, value, options):
        self.value = value
        self.options = options


pytree.register_pytree_node(
    Pair,
    lambda pair: ((pair.value,), pair.options),
    lambda values, options: Pair(values[0], options),
)


@torch._dynamo.nonstrict_trace
def doubled(pair):
    return pair.value * 2


def f(x):
    return doubled(Pair(x, Options()))  # breaks here


def fixed(x):
    return doubled(Pair(x, None))


def inputs():
    return (torch.ones(3),)
