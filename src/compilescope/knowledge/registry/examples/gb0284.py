"""`step_unsupported()` compiles up to here only, and `fullgraph=True` forbids it."""

import torch

FULLGRAPH = True


def f(x):
    y = x * 2
    torch._dynamo.step_unsupported()  # breaks here
    return y + 1


def fixed(x):
    return x * 2 + 1


def inputs():
    return (torch.ones(3),)
