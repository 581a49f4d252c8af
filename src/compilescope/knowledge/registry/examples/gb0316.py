"""The operator `associative_scan` is called with a dict of additional inputs."""

import torch


def add(a, b):
    return (a + b,)


def f(x):
    return torch.ops.higher_order.associative_scan(add, (x,), {})  # breaks here


def inputs():
    return (torch.ones(3),)
