"""Shows a call of a function that torch._dynamo.disable keeps out."""

import torch

#: graphs 2


@torch._dynamo.disable
def helper(x):
    return x * 2


@torch.compile(backend="eager")
def f(x):
    y = helper(x + 1)  #: break "helper(" Skip calling `torch.compiler.disable()`d function #: category explicit
    return y.relu()


f(torch.ones(3))
