"""Shows a function with a break whose rest recompiles together with its start."""

import torch

#: graphs 4


@torch.compile(backend="eager")  #: recompile 1 "x.dtype" torch.float32 -> torch.float64
def f(x):
    y = x + 1
    print("between")  #: break "print(" Failed to trace builtin operator #: recompile 1 "y.dtype" torch.float32 -> torch.float64 #: category logging
    return y * 2


f(torch.ones(3))
f(torch.ones(3, dtype=torch.float64))
