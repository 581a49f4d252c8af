"""Shows a break four frames below the compiled function."""

import torch

#: graphs 10


def fourth(x):
    y = x + 4
    print("deep")  #: break "print(" Failed to trace builtin operator #: category logging
    return y * 4


def third(x):
    return fourth(x + 3) * 3


def second(x):
    return third(x + 2) * 2


def first(x):
    return second(x + 1) * 1


@torch.compile(backend="eager")
def f(x):
    return first(x - 1).relu()


f(torch.ones(3))
