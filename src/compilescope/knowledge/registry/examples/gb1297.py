"""A tuple that holds itself, by way of a list, is returned."""

import torch


def f(x):
    items = []
    result = (x + 1, items)
    items.append(result)
    return result  # breaks here


def inputs():
    return (torch.ones(3),)
