"""A function marked with `nonstrict_trace` returns what the graph cannot hold."""

import torch


class Result:
    def __init__(self, value):
        self.value = value


@torch._dynamo.nonstrict_trace
def doubled(x):
    return Result(x * 2)


def f(x):
    return doubled(x).value  # breaks here


@torch._dynamo.nonstrict_trace
def plain_doubled(x):
    return x * 2


def fixed(x):
    return plain_doubled(x)


def inputs():
    return (torch.ones(3),)
