"""Little memory, because a helper that is not compiled fills it row by row."""

import torch


@torch.compiler.disable
def fill(x):
    result = torch.empty_like(x)
    for rows, out in zip(x.split(16), result.split(16), strict=True):
        y = torch.sigmoid(rows) * rows
        z = torch.exp(-y.abs())
        out.copy_((y + z) / (1 + z))
    return result


def smooth(x):
    return fill(x)
