"""Shows one function compiled again after a reset: still one site, and no recompile."""

import torch

#: graphs 4


@torch.compile(backend="eager")
def f(x):
    y = x + 1
    print("between")  #: break "print(" Failed to trace builtin operator #: category logging
    return y * 2


f(torch.ones(3))
torch._dynamo.reset()
f(torch.ones(4))
