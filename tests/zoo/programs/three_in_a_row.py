"""Shows three breaks in a row, so a chain of resume functions."""

import torch

#: graphs 4


@torch.compile(backend="eager")
def f(x):
    x = x + 1
    print("one")  #: break "print(" Failed to trace builtin operator #: category logging
    x = x * 2
    print("two")  #: break "print(" Failed to trace builtin operator #: category logging
    x = x - 3
    print("three")  #: break "print(" Failed to trace builtin operator #: category logging
    return x.relu()


f(torch.ones(3))
