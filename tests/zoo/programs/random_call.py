"""Shows a draw from Python's random."""

import random

import torch

#: graphs 1

random.seed(0)


@torch.compile(backend="eager")
def f(x):
    return x * random.random()  #: break "random.random()" Attempted to call function marked as skipped #: category rng-device-state #: with tracing/random none


f(torch.ones(3))
