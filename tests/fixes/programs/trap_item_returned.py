# ideal: any
# trap: the caller gets a Python number, and asks for its type
"""The size of the step is given back as a number."""

import torch


def step(x):
    size = x.norm().item()
    return x * 0.5, size


run = torch.compile(step, backend="eager")
for scale in (1.0, 2.0):
    out, size = run(torch.ones(4) * scale)
    print(type(size).__name__, isinstance(size, float), round(size, 4), out.sum().item())
