"""`tobytes` of a NumPy array makes Python bytes of its values."""

import torch


def f(x):
    return x + len(x.numpy().tobytes())  # breaks here


def fixed(x):
    return x + x.numel() * x.element_size()


def inputs():
    return (torch.ones(3),)
