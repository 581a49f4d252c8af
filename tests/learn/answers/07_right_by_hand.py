"""PyTorch's own fresh cache, and a clock around the first call."""

from time import perf_counter

import torch
from torch._inductor.utils import fresh_cache


def function(x):
    return torch.sin(x) * torch.cos(x) + 1


def cold_seconds(mode):
    torch.compiler.reset()
    x = torch.randn(1000)
    with fresh_cache():
        begin = perf_counter()
        torch.compile(function, mode=mode)(x)
        return perf_counter() - begin
