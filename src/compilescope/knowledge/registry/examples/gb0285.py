"""`current_stream` is called with too many arguments."""

import torch


def f(x):
    return x + 1, torch.accelerator.current_stream("cpu", 1)  # breaks here


def inputs():
    return (torch.ones(3),)
