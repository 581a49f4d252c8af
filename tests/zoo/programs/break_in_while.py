"""Shows a print in a while loop over a Python number."""

import torch

#: graphs 0


@torch.compile(backend="eager")  #: eager Failed to trace builtin operator
def f(x):
    i = 0
    while i < 2:
        x = x * 2
        print(i)  #: break "print(" Failed to trace builtin operator #: category logging
        i += 1
    return x.relu()


f(torch.ones(3))
