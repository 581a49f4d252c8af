"""Shows a file opened inside the compiled function."""

import os

import torch

#: graphs 2


@torch.compile(backend="eager")
def f(x):
    y = x + 1
    stream = open(os.devnull)  #: break "open(" Failed to trace builtin operator #: category unsupported-builtin
    stream.close()  #: break "stream.close()" Unsupported method call #: category unsupported-builtin
    return y * 2


f(torch.ones(3))
