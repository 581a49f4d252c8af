"""Shows a break in a finally block."""

import torch

#: graphs 2


@torch.compile(backend="eager")
def f(x):
    try:
        y = x + 1
    finally:
        print("finally")  #: break "print(" Failed to trace builtin operator #: category logging
    return y * 2


f(torch.ones(3))
