"""The position in the bytecode is read from a traceback."""

import torch


def f(x):
    try:
        raise ValueError("bad")
    except ValueError as error:
        if error.__traceback__.tb_lasti >= 0:  # breaks here
            return x + 1
    return x


def fixed(x):
    try:
        raise ValueError("bad")
    except ValueError:
        return x + 1


def inputs():
    return (torch.ones(3),)
