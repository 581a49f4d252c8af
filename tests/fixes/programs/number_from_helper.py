# ideal: tensor-for-number
"""A helper reads the number, and the compiled function computes with it."""

import torch


def largest(x) -> float:
    return x.abs().max().item()


@torch.compile(backend="eager")
def scaled(x):
    high = largest(x)
    return x / high, x * (0.5 * high)


for scale in (1.0, 3.0):
    small, large = scaled(torch.arange(1.0, 4.0) * scale)
    print([f"{value:.4f}" for value in small.tolist() + large.tolist()])
