# ideal: where-for-if
# The test names what the branch uses.
import torch


def normalise(x):
    if 0 < (top := x.abs().max()) <= 8:
        x = x * 0.5 + top
    return x.cos()


f = torch.compile(normalise, backend="eager")
for k in (0.0, 4.0, 16.0):
    print(f(torch.full((3,), k)))
