"""The `__getattr__` of an object is an object itself, no function."""

import torch


class Two:
    def __call__(self, name):
        return 2


class Options:
    __getattr__ = Two()


options = Options()


def f(x):
    return x * options.scale  # breaks here


class PlainOptions:
    def __getattr__(self, name):
        return 2


plain_options = PlainOptions()


def fixed(x):
    return x * plain_options.scale


def inputs():
    return (torch.ones(3),)
