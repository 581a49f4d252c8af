#: because: not a dict, list or set
import copy

import torch

layer = torch.nn.Linear(3, 3)


def f(x):
    return copy.copy(layer)(x)


torch.compile(f, backend="eager")(torch.ones(3))
