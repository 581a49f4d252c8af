"""Somebody asked for a break, with `torch._dynamo.graph_break()`."""

import torch


def f(x):
    y = x.sin()
    torch._dynamo.graph_break()  # breaks here
    return y + 1


def fixed(x):
    return x.sin() + 1


def inputs():
    return (torch.ones(3),)
