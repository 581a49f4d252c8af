"""The operator `scan` is called with a tensor to start from where it wants a tuple."""

import functools

import torch


def add(a, b):
    return (a + b, a - b)


def call(*args, combine_fn):
    return combine_fn(*args)


combine = functools.partial(call, combine_fn=add)


def f(x):
    return torch.ops.higher_order.scan(combine, x, (x,), ())  # breaks here


def inputs():
    return (torch.ones(3),)
