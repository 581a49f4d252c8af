"""Shows a break in a function defined inside the compiled one."""

import torch

#: graphs 4


@torch.compile(backend="eager")
def f(x):
    def inner(y):
        z = y + 1
        print("inner")  #: break "print(" Failed to trace builtin operator #: category logging
        return z * 2

    return inner(x * 3) - 1


f(torch.ones(3))
