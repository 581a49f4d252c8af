"""A `@contextmanager` object is returned from the compiled function."""

import contextlib

import torch


@contextlib.contextmanager
def doubled(x):
    yield x * 2


def f(x):
    return x + 1, doubled(x)  # breaks here


def inputs():
    return (torch.ones(3),)
