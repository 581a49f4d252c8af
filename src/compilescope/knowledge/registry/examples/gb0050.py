"""What stands behind `except` is no class."""

import torch


def f(x):
    try:
        raise ValueError("no")
    except x:  # breaks here
        return x + 1


def inputs():
    return (torch.ones(3),)
