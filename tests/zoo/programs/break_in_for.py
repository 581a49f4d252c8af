"""Shows a print in a for loop, which costs the whole frame."""

import torch

#: graphs 0


@torch.compile(backend="eager")  #: eager Failed to trace builtin operator
def f(x):
    x = x + 1
    for i in range(3):
        x = x * 2
        print(i)  #: break "print(" Failed to trace builtin operator #: category logging
    return x.relu()


f(torch.ones(3))
