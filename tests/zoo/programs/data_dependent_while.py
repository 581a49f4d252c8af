"""Shows a loop that runs until a tensor is small."""

import torch

#: graphs 2 #: with bytecode/forward-tests graphs 1


@torch.compile(backend="eager")  #: with bytecode/forward-tests eager-rest Data-dependent branching
def f(x):
    x = x * 2
    while x.abs().max() > 1:  #: break "x.abs()" Data-dependent branching #: category data-dependent-branch
        x = x / 2
    return x


f(torch.full((3,), 4.0))
