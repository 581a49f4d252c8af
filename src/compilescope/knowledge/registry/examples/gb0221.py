"""A function under `@contextmanager` returns an iterator and is no generator itself."""

import contextlib

import torch

ALSO = ("GB0142",)


@contextlib.contextmanager
def scaled():
    return iter([2])


def f(x):
    with scaled() as scale:  # breaks here
        return x * scale


@contextlib.contextmanager
def plain_scaled():
    yield 2


def fixed(x):
    with plain_scaled() as scale:
        return x * scale


def inputs():
    return (torch.ones(3),)
