import copy

import torch

settings = {"scale": 2.0}


def f(x, **more):
    own = settings.copy()  # not ours to change
    own.update(more)
    return x * own["scale"]


torch.compile(f, backend="eager")(torch.ones(3), scale=3.0)
