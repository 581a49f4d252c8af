# ideal: dynamic-sources
"""Two settings change at once: fixing one of them alone leaves the recompile to the other."""

import torch

SETTINGS = {"gain": 2, "offset": 5}


@torch.compile(backend="eager", dynamic=False)
def adjust(x):
    return (x * SETTINGS["gain"]).sin() + SETTINGS["offset"]


torch.manual_seed(0)
x = torch.randn(16)
print(adjust(x).sum())
SETTINGS.update(gain=3, offset=7)
print(adjust(x).sum())
