"""It compiles, and returns a number that it did not measure."""

import torch

from compilescope.apps.learn.kit import fresh_cache


def function(x):
    return torch.sin(x) * torch.cos(x) + 1


def cold_seconds(mode):
    with fresh_cache():
        torch.compile(function, mode=mode)(torch.randn(1000))
    return 0.001
