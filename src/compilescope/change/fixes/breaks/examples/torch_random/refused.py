#: because: Python uses the result
import random
import torch


def f(x):
    if random.gauss(0.0, 1.0) > 0:
        return x
    return x * 2


torch.compile(f, backend="eager")(torch.ones(3))
