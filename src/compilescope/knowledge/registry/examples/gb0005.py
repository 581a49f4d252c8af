"""`str` of an object whose text is made in C."""

from datetime import timedelta

import torch

step = timedelta(seconds=2)


def f(x):
    return x * len(str(step))  # breaks here


length = len(str(step))


def fixed(x):
    return x * length


def inputs():
    return (torch.ones(3),)
