"""Shows a break under a context manager class."""

import torch

#: graphs 0


class Scope:
    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False


@torch.compile(backend="eager")  #: eager Failed to trace builtin operator
def f(x):
    y = x + 1
    with Scope():
        print("inside")  #: break "print(" Failed to trace builtin operator #: category logging
        y = y * 2
    return y.relu()


f(torch.ones(3))
