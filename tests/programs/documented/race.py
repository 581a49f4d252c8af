"""Backends that do what the page on `diff` says: draw other random numbers, or refuse."""

import torch
from torch import nn


def build():
    return nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)).train(), (torch.randn(4, 8),)


def own_generator(gm, inputs):
    def run(*args):
        torch.rand(7)
        return gm.forward(*args)

    return run


def refusing(gm, inputs):
    def run(*args):
        raise NotImplementedError("linear: no such instruction")

    return run
