# ideal: running-best
"""Of several candidates the one with the largest norm; of equal ones the first, and NaN as it is."""

import torch


@torch.compile(backend="eager")
def pick(x, y):
    candidates = [x.sin(), y.cos(), x + y]
    best = max(candidates, key=lambda c: c.norm())
    return best * 2


for a, b in ((1.0, 2.0), (0.0, 0.0), (float("nan"), 1.0), (1.0, float("nan"))):
    print(pick(torch.full((3,), a), torch.full((3,), b)).tolist())
