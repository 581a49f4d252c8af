"""`groupby` is called without anything to group."""

import itertools

import torch


def f(x):
    return x + len(list(itertools.groupby()))  # breaks here


def inputs():
    return (torch.ones(3),)
