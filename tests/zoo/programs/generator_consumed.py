"""Shows a generator consumed inside a compiled function, which breaks nothing."""

import torch

#: graphs 1


def pieces(x):
    for i in range(3):
        yield x * i


@torch.compile(backend="eager")
def f(x):
    return sum(pieces(x + 1))


f(torch.ones(3))
