"""Shows functools.reduce with a function that prints."""

import functools

import torch

#: graphs 3


def add(a, b):
    print("add")  #: break "print(" Failed to trace builtin operator #: category logging
    return a + b


@torch.compile(backend="eager")
def f(x):
    y = x + 1
    return functools.reduce(add, [y, y + 1, y + 2]) * 2


f(torch.ones(3))
