"""Shows a list argument that is a tuple at the second call."""

import torch

#: graphs 2


@torch.compile(backend="eager")  #: recompile 1 "type(xs)" list -> tuple
def f(xs):
    return xs[0] * 2


f([torch.ones(3)])
f((torch.ones(3),))
