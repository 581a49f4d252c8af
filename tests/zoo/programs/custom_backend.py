"""Shows a break under a backend function of the user's own."""

import torch

#: graphs 2


def backend(gm, example_inputs):
    return gm.forward


@torch.compile(backend=backend)
def f(x):
    y = x + 1
    print("between")  #: break "print(" Failed to trace builtin operator #: category logging
    return y * 2


f(torch.ones(3))
