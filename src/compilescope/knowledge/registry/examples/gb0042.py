"""A region to be compiled once is a `functools.partial`, no function."""

import functools

import torch


def add(one, x):
    return x + one


region = torch.compiler.nested_compile_region(functools.partial(add, 1))


def f(x):
    return region(x)  # breaks here


@torch.compiler.nested_compile_region
def plain_region(x):
    return x + 1


def fixed(x):
    return plain_region(x)


def inputs():
    return (torch.ones(3),)
