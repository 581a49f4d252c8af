"""A generator function cannot be compiled itself; a function that consumes it can."""

import torch


def f(x):  # breaks here
    yield x + 1
    yield x + 2


def run():
    return list(torch.compile(f, backend="eager")(torch.ones(3)))


def fixed(x):
    return [x + 1, x + 2]


def inputs():
    return (torch.ones(3),)
