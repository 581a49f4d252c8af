#: because: not a single call
import random
import torch


def f(x):
    return x * random.choice([1, 2])


torch.compile(f, backend="eager")(torch.ones(3))
