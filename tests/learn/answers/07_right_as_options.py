"""The mode is passed as the options that it stands for."""

import torch
from torch._inductor import list_mode_options

from compilescope.apps.learn.kit import first_call_seconds, fresh_cache


def function(x):
    return torch.sin(x) * torch.cos(x) + 1


def cold_seconds(mode):
    with fresh_cache():
        compiled = torch.compile(function, options=list_mode_options(mode))
        return first_call_seconds(compiled, torch.randn(1000))
