# ideal: where-for-if
"""A name that holds a flag or a tensor, given and not."""

import torch


def score(x, y, strict=False):
    bad = strict and (x - y).abs().max() > 3
    value = (x * y).mean()
    if bad:
        value = value * 0
    return value


run = torch.compile(score, backend="eager")
for k in (1.0, 8.0):
    for strict in (False, True):
        print(run(torch.full((3,), k), torch.ones(3), strict).item())
