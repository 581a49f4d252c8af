"""`nonstrict_trace` is applied to a function that is made inside the compiled function."""

import torch


def f(x):
    def doubled(x):
        return x * 2

    return torch._dynamo.nonstrict_trace(doubled)(x)  # breaks here


@torch._dynamo.nonstrict_trace
def plain_doubled(x):
    return x * 2


def fixed(x):
    return plain_doubled(x)


def inputs():
    return (torch.ones(3),)
