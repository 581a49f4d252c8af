"""Shows a random generator object of the user's own, drawn with gauss."""

import random

import torch

#: graphs 2

rng = random.Random(0)


@torch.compile(backend="eager")
def f(x):
    y = x + 1
    return y * rng.gauss(0.0, 1.0)  #: break "rng.gauss(" Unsupported method call #: category rng-device-state #: with tracing/random break "rng.gauss(" Attempted to inline function marked as skipped


f(torch.ones(3))
