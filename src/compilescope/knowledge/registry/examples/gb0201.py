"""The class of a named tuple is made with a tensor as a default."""

from collections import namedtuple

import torch

ALSO = ("GB0059", "GB0467")


def f(x):
    Pair = namedtuple("Pair", ("one", "two"), defaults=(x,))  # breaks here
    return Pair(x + 1).one


PlainPair = namedtuple("PlainPair", ("one", "two"))


def fixed(x):
    return PlainPair(x + 1, x).one


def inputs():
    return (torch.ones(3),)
