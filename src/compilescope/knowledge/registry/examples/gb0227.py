"""A parameter is made of a tensor subclass inside the compiled function."""

import torch

CONFIG = {"graph_break_on_nn_param_ctor": False}


class Tagged(torch.Tensor):
    pass


def f(x):
    weight = torch.nn.Parameter(x.as_subclass(Tagged) * 1)  # breaks here
    return x * weight.numel()


def fixed(x):
    weight = x.as_subclass(Tagged) * 1
    return x * weight.numel()


def inputs():
    return (torch.ones(3),)
