"""The backend gives the graph up: it meets an operator that it cannot run with fake tensors."""

import torch
from torch._subclasses.fake_tensor import UnsupportedOperatorException


def choosy(graph, example_inputs):
    raise UnsupportedOperatorException(torch.ops.aten.sin.default)


def f(x):
    return x.sin() + 1


def run():
    return torch.compile(f, backend=choosy)(torch.ones(3))  # breaks here


def run_fixed():
    return torch.compile(f, backend="eager")(torch.ones(3))
