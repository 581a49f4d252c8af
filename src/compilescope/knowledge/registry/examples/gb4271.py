"""The class of an object is changed."""

import torch


class Off:
    scale = 1


class On:
    scale = 2


def f(x):
    state = Off()
    state.__class__ = On  # breaks here
    return x * state.scale


def fixed(x):
    state = On()
    return x * state.scale


def inputs():
    return (torch.ones(3),)
