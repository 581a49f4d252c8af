"""Shows a print in a generator that a compiled function consumes."""

import torch

#: graphs 0


def pieces(x):
    for i in range(2):
        print("piece")  #: break "print(" Failed to trace builtin operator #: category logging
        yield x * i


@torch.compile(backend="eager")  #: eager Failed to trace builtin operator
def f(x):
    y = x + 1
    total = sum(pieces(y))
    return total * 2


f(torch.ones(3))
