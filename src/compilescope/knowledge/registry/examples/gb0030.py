"""Code that runs at compile time, with `comptime`, asks for a break."""

import torch
from torch._dynamo.comptime import comptime


def f(x):
    y = x * 2
    comptime.graph_break()  # breaks here
    return y + 1


def fixed(x):
    return x * 2 + 1


def inputs():
    return (torch.ones(3),)
