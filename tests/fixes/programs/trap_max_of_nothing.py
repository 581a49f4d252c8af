# ideal: any
# trap: the maximum of nothing is an error, that of zeros or -inf is none
"""The largest of the positive ones; there may be none."""

import torch


def peak(x):
    return x[x > 0].max()


run = torch.compile(peak, backend="eager")
for row in ([1.0, 3.0], [-1.0, -2.0]):
    try:
        print(run(torch.tensor(row)).item())
    except RuntimeError:
        print("none")
