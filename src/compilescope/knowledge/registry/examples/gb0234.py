"""A mode for torch functions is taken off, and there is none."""

import torch


def f(x):
    torch._C._pop_torch_function_stack()  # breaks here
    return x + 1


def inputs():
    return (torch.ones(3),)
