#: because: not known to be a tensor
import copy

import torch

layer = torch.nn.Linear(3, 3)


def f(x):
    own = copy.deepcopy(layer)
    return own(x)


torch.compile(f, backend="eager")(torch.ones(3))
