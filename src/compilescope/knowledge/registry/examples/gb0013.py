"""The handle of a hook that was made outside comes into the compiled function."""

import torch


def f(x, handle):
    handle.remove()  # breaks here
    return x + 1


def fixed(x, handle):
    return x + 1


def inputs():
    x = torch.ones(3, requires_grad=True)
    return x, x.register_hook(lambda grad: grad)
