import os

import torch


def scaled(x):
    if os.getenv("SCALE_ON_DEVICE", "0") == "1":
        return x / x.abs().max()
    return x / x.abs().max().item()


@torch.compile(backend="eager")
def f(x):
    return scaled(x) * 2


print(f(torch.ones(3)))
