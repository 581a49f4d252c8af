"""Shows a break under a context manager made with contextlib."""

import contextlib

import torch

#: graphs 0


@contextlib.contextmanager
def scaled(factor):
    yield factor


@torch.compile(backend="eager")  #: eager Failed to trace builtin operator
def f(x):
    y = x + 1
    with scaled(2.0) as factor:
        print("inside")  #: break "print(" Failed to trace builtin operator #: category logging
        y = y * factor
    return y.relu()


f(torch.ones(3))
