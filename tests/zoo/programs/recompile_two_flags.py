"""Shows two global flags and an argument that change at once."""

import torch

#: graphs 2

DOUBLE = True
NEGATE = False


@torch.compile(backend="eager")  #: recompile 1 "mode" 'relu' -> 'tanh' #: recompile 1 "G['DOUBLE']" True -> False #: recompile 1 "G['NEGATE']" False -> True
def f(x, mode):
    y = x * 2 if DOUBLE else x
    y = -y if NEGATE else y
    return y.relu() if mode == "relu" else y.tanh()


f(torch.ones(3), "relu")
DOUBLE = False
NEGATE = True
f(torch.ones(3), "tanh")
