"""`groupby` is called with a keyword that it does not take."""

import itertools

import torch


def f(x):
    return x + len(list(itertools.groupby([1], kind=int)))  # breaks here


def inputs():
    return (torch.ones(3),)
