"""Shows a break at the bottom of a recursion."""

import torch

#: graphs 5


@torch.compile(backend="eager")  #: recompile 2 "depth" 2 -> 1
def f(x, depth):
    if depth == 0:
        print("bottom")  #: break "print(" Failed to trace builtin operator #: category logging
        return x + 1
    return f(x * 2, depth - 1) - 1


f(torch.ones(3), 2)
