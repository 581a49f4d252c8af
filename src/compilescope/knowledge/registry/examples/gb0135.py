"""An attribute of an exception is assigned that Dynamo does not keep."""

import torch


def f(x):
    try:
        error = ValueError("bad")
        error.code = 3  # breaks here
        raise error
    except ValueError:
        return x + 1


def fixed(x):
    try:
        raise ValueError("bad", 3)
    except ValueError:
        return x + 1


def inputs():
    return (torch.ones(3),)
