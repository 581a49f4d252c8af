"""`functools.partial` is called without a function."""

import functools

import torch


def f(x):
    return functools.partial()(x)  # breaks here


def inputs():
    return (torch.ones(3),)
