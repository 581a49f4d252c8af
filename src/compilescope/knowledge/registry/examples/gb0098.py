"""The function is wrapped in `torch.compiler.disable`: compiled code may call it, never hold it."""

import torch


@torch.compiler.disable
def scale(x):
    return x * 2


def f(x):
    return scale(x) + 1  # breaks here


def plain_scale(x):
    return x * 2


def fixed(x):
    return plain_scale(x) + 1


def inputs():
    return (torch.ones(3),)
