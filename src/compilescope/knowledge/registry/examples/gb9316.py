"""The id of an object that exists while tracing only is compared with a number."""

import torch

ALSO = ("GB4501",)


class Marker:
    pass


def f(x):
    if id(Marker()) > 0:  # breaks here
        return x + 1
    return x


def fixed(x):
    return x + 1


def inputs():
    return (torch.ones(3),)
