"""Little memory, but it overwrites the input."""

import torch


def smooth(x):
    y = torch.sigmoid(x) * x
    z = torch.exp(-y.abs())
    return x.copy_((y + z) / (1 + z))
