# ideal: copy-method
import copy

import torch

DEFAULTS = {"gain": 2.0, "bias": 0.5}


def affine(x, overrides=None):
    options = copy.copy(DEFAULTS)
    if overrides:
        options.update(overrides)
    return x * options["gain"] + options["bias"]


fast = torch.compile(affine, backend="eager")
print(fast(torch.arange(3.0)).tolist())
print(fast(torch.arange(3.0), {"gain": 3.0}).tolist())
print(DEFAULTS)
