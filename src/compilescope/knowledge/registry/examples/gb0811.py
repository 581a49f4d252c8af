"""An iterator that was made outside cannot be iterated inside the compiled function."""

import torch


def f(x, names):
    for name in names:  # breaks here
        x = x + len(name)
    return x


def inputs():
    return torch.ones(3), iter(["a", "bc"])
