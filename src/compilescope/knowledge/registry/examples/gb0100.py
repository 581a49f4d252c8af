"""The handle of a tensor's hook is kept in a global."""

import torch

handle = None


def f(x):
    global handle
    handle = x.register_hook(lambda grad: grad * 2)  # breaks here
    return x * 2


def fixed(x):
    x.register_hook(lambda grad: grad * 2)
    return x * 2


def inputs():
    return (torch.ones(3, requires_grad=True),)
