"""Shows a dispatch mode active at the first call, which switches compilation off for good."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

#: graphs 0 #: with tracing/compiled-after-modes graphs 1


class Quiet(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@torch.compile(backend="eager")  #: eager dispatch mode
def f(x):
    return x * 2


with Quiet():
    f(torch.ones(3))
f(torch.ones(3))
