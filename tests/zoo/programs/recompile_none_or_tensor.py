"""Shows an optional argument that is None first and a tensor later."""

import torch

#: graphs 2


@torch.compile(backend="eager")  #: recompile 1 "bias" None -> Tensor(shape=(3,), dtype=torch.float32)
def f(x, bias=None):
    y = x * 2
    return y if bias is None else y + bias


f(torch.ones(3))
f(torch.ones(3), torch.ones(3))
