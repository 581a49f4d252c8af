"""`super().__delattr__` gets a name that is no constant."""

import torch

ALSO = ("GB0092",)


class State:
    def __delattr__(self, name):
        super().__delattr__(name)  # breaks here


def f(x):
    state = State()
    state.scale = 2
    state.__delattr__(x)
    return x


def inputs():
    return (torch.ones(3),)
