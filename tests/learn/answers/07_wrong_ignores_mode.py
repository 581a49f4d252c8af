"""Cold and timed well, but always with the default mode."""

import torch

from compilescope.apps.learn.kit import first_call_seconds, fresh_cache


def function(x):
    return torch.sin(x) * torch.cos(x) + 1


def cold_seconds(mode):
    with fresh_cache():
        return first_call_seconds(torch.compile(function), torch.randn(1000))
