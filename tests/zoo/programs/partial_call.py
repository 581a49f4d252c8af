"""Shows a functools.partial of a function that breaks."""

import functools

import torch

#: graphs 4


def scale(x, factor):
    y = x * factor
    print("scale")  #: break "print(" Failed to trace builtin operator #: category logging
    return y + 1


double = functools.partial(scale, factor=2)


@torch.compile(backend="eager")
def f(x):
    return double(x - 1).relu()


f(torch.ones(3))
