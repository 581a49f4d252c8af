"""A debugging flag makes every function that calls nothing break at its return."""

import torch

CONFIG = {"debug_force_graph_break_on_leaf_return": True}


def f(x):
    y = x * 2
    return y  # breaks here


def fixed(x):
    return x * 2


def inputs():
    return (torch.ones(3),)
