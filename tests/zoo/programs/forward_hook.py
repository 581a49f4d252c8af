"""Shows a forward hook that prints."""

import torch

#: graphs 3 #: without tracing/resumed-hooks graphs 2

torch.manual_seed(0)


def hook(module, args, output):
    print("hook")  #: break "print(" Failed to trace builtin operator #: category logging


layer = torch.nn.Linear(3, 3)
layer.register_forward_hook(hook)


@torch.compile(backend="eager")
def f(x):
    return layer(x + 1).relu()


f(torch.ones(2, 3))
