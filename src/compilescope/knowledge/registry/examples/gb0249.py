"""The current stream of a device that does not exist."""

import torch


def f(x):
    return x + 1, torch.accelerator.current_stream("abacus")  # breaks here


def inputs():
    return (torch.ones(3),)
