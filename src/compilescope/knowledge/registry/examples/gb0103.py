"""A tensor subclass overrides how items are assigned."""

import torch

ALSO = ("GB0006",)


class Watched(torch.Tensor):
    def __setitem__(self, key, value):
        super().__setitem__(key, value)


def f(x):
    x[0] = 3  # breaks here
    return x + 1


def inputs():
    return (torch.ones(3).as_subclass(Watched),)
