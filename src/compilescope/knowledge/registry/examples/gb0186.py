"""A keyword of `functools.partial` is a str of your own class."""

import functools

import torch


class Name(str):
    pass


def scale(x, by=1):
    return x * by


double = functools.partial(scale, **{Name("by"): 2})
plain_double = functools.partial(scale, by=2)


def f(x):
    return double(x)  # breaks here


def fixed(x):
    return plain_double(x)


def inputs():
    return (torch.ones(3),)
