# ideal: capture-scalars
# trap: Python computes with the number in double precision, a float32 tensor would not
import torch


def gain(x):
    return x.sum().item() * 1e-3 + 0.1


@torch.compile(backend="eager")
def f(x):
    factor = gain(x)
    return x.double() * factor


for first in (0.1, 0.3):
    print(f"{f(torch.tensor([first, 0.2, 0.7])).sum().item():.15f}")
