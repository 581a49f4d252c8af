"""A module is made inside the compiled function, while its parameters cannot be lifted out."""

import torch

CONFIG = {"graph_break_on_nn_param_ctor": False}


def f(x):
    layer = torch.nn.Linear(3, 3)  # breaks here
    return x + layer.in_features


def fixed(x):
    return x + 3


def inputs():
    return (torch.ones(3),)
