"""Shows item called inside a list comprehension."""

import torch

#: graphs 2


@torch.compile(backend="eager")  #: with bytecode/inlined-comprehensions eager-rest Unsupported Tensor.item() call with capture_scalar_outputs=False
def f(x):
    y = x + 1
    values = [v.item() for v in y]  #: break "v.item()" Unsupported Tensor.item() call with capture_scalar_outputs=False #: category scalar-extraction
    return y * values[0]


f(torch.ones(3))
