"""The check of the values comes earlier, but it still breaks the graph."""

import torch


def smooth(x):
    y = torch.sigmoid(x) * x
    if y.abs().max() < 0:
        raise ValueError("no size is negative")
    z = torch.exp(-y.abs())
    return (y + z) / (1 + z)
