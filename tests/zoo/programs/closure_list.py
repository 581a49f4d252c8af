"""Shows a list in a closure that grows at each call, so its length recompiles."""

import torch

#: graphs 3


def make():
    seen = []

    @torch.compile(backend="eager")  #: recompile 2 "len(seen)" 0 -> 1
    def f(x):
        seen.append(x.shape[0])
        return x * len(seen)

    return f


f = make()
for _ in range(3):
    f(torch.ones(3))
