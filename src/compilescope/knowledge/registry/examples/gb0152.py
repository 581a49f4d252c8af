"""Tensors are grouped by their values."""

import itertools

import torch

ALSO = ("GB0811",)


def f(x):
    groups = itertools.groupby([x, x + 1], key=lambda part: part.sum())  # breaks here
    return x + len(list(groups))


def inputs():
    return (torch.ones(3),)
