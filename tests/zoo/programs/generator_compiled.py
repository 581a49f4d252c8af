"""Shows a generator function handed to torch.compile, which runs eagerly."""

import torch

#: graphs 0


@torch.compile(backend="eager")  #: eager generator
def f(x):
    for i in range(3):
        yield x * i


list(f(torch.ones(3)))
