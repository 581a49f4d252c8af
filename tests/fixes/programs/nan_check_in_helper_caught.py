# ideal: outside-of-compiled
"""The caller skips a batch whose logarithm is no number; the check is between two computations."""

import torch


def check_finite(values, name):
    if torch.isnan(values).any():
        raise ValueError(f"NaN in {name}")


@torch.compile(backend="eager")
def score(x):
    logs = x.log()
    check_finite(logs, "logs")
    return logs + 1


for value in (1.0, -1.0, 2.0):
    try:
        print(score(torch.full((2,), value)).tolist())
    except ValueError as error:
        print("skipped:", error)
