"""Shows a break in a loop that hides a later break from Dynamo."""

import torch

#: graphs 0


@torch.compile(backend="eager")  #: eager Failed to trace builtin operator
def f(x):
    for i in range(2):
        x = x * 2
        print(i)  #: break "print(" Failed to trace builtin operator #: category logging
    return x * x.sum().item()


f(torch.ones(3))
