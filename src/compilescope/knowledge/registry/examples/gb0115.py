"""The key function of `groupby` raises an exception."""

import itertools

import torch


def kind(item):
    raise ValueError("no kind")  # breaks here


def f(x):
    groups = itertools.groupby([1, 2], key=kind)
    return x + len(list(groups))


ALSO = ("GB0811",)


def inputs():
    return (torch.ones(3),)
