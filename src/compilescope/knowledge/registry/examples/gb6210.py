"""A module that is made inside is given to a `nonstrict_trace` function."""

import torch


@torch._dynamo.nonstrict_trace
def applied(module, x):
    return module(x)


def f(x):
    return applied(torch.nn.ReLU(), x)  # breaks here


relu = torch.nn.ReLU()


def fixed(x):
    return applied(relu, x)


def inputs():
    return (torch.ones(3),)
