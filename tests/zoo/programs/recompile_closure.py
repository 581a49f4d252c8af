"""Shows two closures over one code object that differ in the value they hold."""

import torch

#: graphs 2


def make(n):
    @torch.compile(backend="eager")  #: recompile 1 "n" 2.0 -> 3.0
    def f(x):
        return x * n

    return f


make(2.0)(torch.ones(3))
make(3.0)(torch.ones(3))
