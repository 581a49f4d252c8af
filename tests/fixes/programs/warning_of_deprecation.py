# ideal: warn-when-compiled
"""An argument that is about to go, and a warning that says so."""

import warnings

import torch


def resize(x, scale=2.0, legacy=True):
    if legacy:
        warnings.warn(f"legacy resize with scale {scale} will be removed", FutureWarning)
    y = x.repeat_interleave(2, dim=-1)
    return y * scale


fast = torch.compile(resize, backend="eager")
for value in (1.0, 2.0):
    print(fast(torch.full((2, 2), value)).sum().item())
