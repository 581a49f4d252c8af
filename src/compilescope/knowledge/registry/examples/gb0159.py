"""A NumPy array is asked for `__version__`, which only NumPy itself has."""

import torch


def f(x):
    return x + len(x.numpy().__version__)  # breaks here


def inputs():
    return (torch.ones(3),)
