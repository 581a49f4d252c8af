"""Tries to compile in a handler that runs at the very end: it was registered before torch came."""

import atexit


@atexit.register
def last():
    def farewell(x):
        return x + 1

    torch.compile(farewell, backend="eager")(torch.ones(2))


import torch


def welcome(x):
    return x * 2


torch.compile(welcome, backend="eager")(torch.ones(2))
