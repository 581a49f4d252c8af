"""It times the first call, but later measurements find the kernels on disk."""

from time import perf_counter

import torch


def function(x):
    return torch.sin(x) * torch.cos(x) + 1


def cold_seconds(mode):
    torch.compiler.reset()
    x = torch.randn(1000)
    compiled = torch.compile(function, mode=mode)
    begin = perf_counter()
    compiled(x)
    return perf_counter() - begin
