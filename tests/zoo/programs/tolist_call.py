"""Shows tolist of an integer tensor."""

import torch

#: graphs 2


@torch.compile(backend="eager")
def f(x, sizes):
    first, second = (sizes + 1).tolist()  #: break "(sizes" Data dependent operator #: category scalar-extraction
    return x * first + second


f(torch.ones(3), torch.tensor([1, 2]))
