"""A parameter is made of a tensor whose size is kept open."""

import torch

CONFIG = {"graph_break_on_nn_param_ctor": False}
FIXED_CONFIG = {"graph_break_on_nn_param_ctor": False}


def f(x):
    weight = torch.nn.Parameter(x * 2)  # breaks here
    return (x * weight).detach()


def run():
    return torch.compile(f, backend="eager", dynamic=True)(torch.ones(4))


def run_fixed():
    return torch.compile(f, backend="eager", dynamic=False)(torch.ones(4))
