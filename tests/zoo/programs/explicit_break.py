"""Shows a break asked for with torch._dynamo.graph_break."""

import torch

#: graphs 2


@torch.compile(backend="eager")
def f(x):
    y = x + 1
    torch._dynamo.graph_break()  #: break "torch._dynamo.graph_break()" Call to `torch._dynamo.graph_break()` #: category explicit
    return y * 2


f(torch.ones(3))
