"""A `@contextmanager` of yours is entered, while the tracing of them is switched off."""

import contextlib

import torch

CONFIG = {"enable_trace_contextlib": False}
FIXED_CONFIG = {"enable_trace_contextlib": True}
ALSO = ("GB0142",)


@contextlib.contextmanager
def scaled():
    yield 2


def f(x):
    with scaled() as scale:  # breaks here
        return x * scale


def inputs():
    return (torch.ones(3),)
