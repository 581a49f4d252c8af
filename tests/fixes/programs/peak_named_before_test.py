# ideal: where-for-if
# The number gets a name, is tested, and is computed with.
import torch


def limit(x):
    peak = x.abs().max().item()
    if peak > 0.7:
        x = x / peak
    return x * 3


run = torch.compile(limit, backend="eager")
print(run(torch.tensor([1.0, 2.0, -3.0])), run(torch.tensor([0.1, -0.2, 0.3])))
