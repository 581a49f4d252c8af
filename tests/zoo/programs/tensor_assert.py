"""Shows an assert on a tensor whose message is not a constant."""

import torch

#: graphs 2


@torch.compile(backend="eager")
def f(x):
    y = x + 1
    assert (y > 0).all(), x.shape  #: break "assert" Data-dependent branching #: with bytecode/assert-at-test break "(y > 0)" Data-dependent branching #: category validation-guard
    return y * 2


f(torch.ones(3))
