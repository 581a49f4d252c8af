"""`invoke_subgraph` is called by itself, not by `torch.compiler.nested_compile_region`."""

import torch

ALSO = ("GB0208",)


def double(x):
    return x * 2


def f(x):
    return torch.ops.higher_order.invoke_subgraph(double, "double", x)  # breaks here


@torch.compiler.nested_compile_region
def region(x):
    return x * 2


def fixed(x):
    return region(x)


def inputs():
    return (torch.ones(3),)
