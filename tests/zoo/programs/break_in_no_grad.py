"""Shows a break under no_grad, which Dynamo can resume."""

import torch

#: graphs 2


@torch.compile(backend="eager")
def f(x):
    with torch.no_grad():
        y = x + 1
        print("inside")  #: break "print(" Failed to trace builtin operator #: category logging
        y = y * 2
    return y.relu()


f(torch.ones(3))
