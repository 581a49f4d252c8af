# ideal: where-for-conditional
"""One of the rows decides for all of them; the tests are tensors of no dimensions."""

import torch


def scaled(scores, x):
    return x * 2 if any(score > 0 for score in scores) else x - 1


run = torch.compile(scaled, backend="eager")
for first in (-1.0, 1.0):
    scores = torch.tensor([-2.0, first, -3.0])
    print(run(scores, torch.arange(3.0)).tolist())
