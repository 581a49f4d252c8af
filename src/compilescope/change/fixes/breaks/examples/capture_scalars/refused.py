#: because: whether a graph accepts the number
import random

import torch


def f(x):
    return torch.roll(x, random.randint(1, 2), dims=-1) * 2


torch.compile(f, backend="eager")(torch.ones(3))
