"""An exception of Python is made with a keyword."""

import torch


def f(x):
    try:
        raise ImportError("no", name="fast_kernels")  # breaks here
    except ImportError:
        return x + 1


def fixed(x):
    try:
        raise ImportError("no")
    except ImportError:
        return x + 1


def inputs():
    return (torch.ones(3),)
