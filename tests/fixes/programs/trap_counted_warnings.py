# ideal: none
# trap: who counts the warnings counts others when they are dropped or given once
"""A test that counts how often a function warns."""

import warnings

import torch


def clip(x):
    warnings.warn("clipped", RuntimeWarning, stacklevel=2)
    return x.clamp(-1, 1)


run = torch.compile(clip, backend="eager")
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for _ in range(3):
        run(torch.ones(2) * 4)
ours = [each for each in seen if each.category is RuntimeWarning]
print(len(ours), "warnings")
