"""`product` is called with a keyword that it does not take."""

import itertools

import torch


def f(x):
    return x + len(list(itertools.product([1], times=2)))  # breaks here


def inputs():
    return (torch.ones(3),)
