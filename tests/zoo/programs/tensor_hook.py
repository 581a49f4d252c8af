"""Shows a hook put on an intermediate tensor, which stays in the graph."""

import torch

#: graphs 1


@torch.compile(backend="eager")
def f(x):
    y = x * 2
    y.register_hook(lambda grad: grad * 3)
    return y.sum()


f(torch.ones(3, requires_grad=True)).backward()
