"""A TypedDict with keys that may be missing is made."""

from typing import TypedDict

import torch


class Options(TypedDict, total=False):
    scale: int


def f(x):
    options = Options(scale=2)  # breaks here
    return x * options["scale"]


def fixed(x):
    options = {"scale": 2}
    return x * options["scale"]


def inputs():
    return (torch.ones(3),)
