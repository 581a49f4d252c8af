"""`__get__` of a function is called without an object."""

import types

import torch


def double(self, x):
    return x * 2


def f(x):
    return types.FunctionType.__get__(double)(x)  # breaks here


def inputs():
    return (torch.ones(3),)
