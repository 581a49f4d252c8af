"""`setattr` with a name that is a tensor."""

import torch


class State:
    pass


def f(x):
    setattr(State(), x, 1)  # breaks here
    return x + 1


def inputs():
    return (torch.ones(3),)
