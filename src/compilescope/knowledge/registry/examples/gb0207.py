"""A list is sorted by the values of tensors."""

import torch


def f(x):
    parts = [x + 1, x]
    parts.sort(key=lambda part: part.sum())  # breaks here
    return parts[0]


def fixed(x):
    parts = torch.stack([x + 1, x])
    order = parts.sum(dim=1).argsort()
    return parts.index_select(0, order)[0]


def inputs():
    return (torch.ones(3),)
