# ideal: where-for-return
"""A number is read and compared, and the answer has a name."""

import torch


def relax(x, y, tolerance):
    converged = (x - y).abs().max().item() < tolerance and bool(x.isfinite().all())
    if not converged:
        return (x + y) / 2
    return y.clone()


run = torch.compile(relax, backend="eager")
for k in (0.0, 1.0, 5.0):
    print(run(torch.full((3,), k), torch.ones(3), 2.0))
