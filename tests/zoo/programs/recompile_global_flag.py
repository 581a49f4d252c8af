"""Shows a global flag that is flipped between calls."""

import torch

#: graphs 2

FLAG = True


@torch.compile(backend="eager")  #: recompile 1 "G['FLAG']" True -> False
def f(x):
    return x * 2 if FLAG else x + 1


f(torch.ones(3))
FLAG = False
f(torch.ones(3))
