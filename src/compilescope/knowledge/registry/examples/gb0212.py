"""A profiler is returned from the compiled function."""

import torch


def f(x):
    return x + 1, torch.profiler.profile()  # breaks here


def inputs():
    return (torch.ones(3),)
