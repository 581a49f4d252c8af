"""A nested function reads a variable that has no value yet."""

import torch


def f(x):
    def scale():
        return late + 1

    y = x * scale()  # breaks here
    late = 1
    return y + late


def inputs():
    return (torch.ones(3),)
