#: note: In float64, the arithmetic is Python's own.
import random
import torch


def f(x):
    scale = 0.9 + 0.2 * random.random()
    return x * scale


torch.compile(f, backend="eager")(torch.ones(3))
