"""The origin of a type of `typing` is read, which Dynamo cannot hold."""

from typing import Optional

import torch


def f(x):
    if Optional[int].__origin__ is None:  # breaks here
        return x
    return x + 1


ORIGIN = Optional[int].__origin__


def fixed(x):
    if ORIGIN is None:
        return x
    return x + 1


def inputs():
    return (torch.ones(3),)
