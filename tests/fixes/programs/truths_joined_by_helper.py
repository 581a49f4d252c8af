# ideal: tensor-logic
"""A helper returns two truths joined."""

import torch


def is_flat(x, y):
    return (x.std() < 1e-3) or (y.std() < 1e-3)


def weigh(x, y):
    return x * y + is_flat(x, y)


run = torch.compile(weigh, backend="eager")
for k in (0.0, 1.0):
    print(run(torch.arange(3.0) * k, torch.arange(3.0)).sum().item())
