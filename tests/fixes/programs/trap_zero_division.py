# ideal: any
# trap: Python raises where the sum is zero, a tensor would go on with inf
"""Rows are scaled to sum to one; a sum of zero is an error."""

import torch


def normalise(x):
    factor = 1.0 / x.sum().item()
    return x * factor


run = torch.compile(normalise, backend="eager")
for row in ([1.0, 3.0], [2.0, 2.0]):
    print(run(torch.tensor(row)).tolist())
