"""Shows a print in a loop of a callee: the callee runs eagerly, its caller compiles around it."""

import torch

#: graphs 2


def repeat(x):  #: eager Failed to trace builtin operator
    for i in range(2):
        x = x * 2
        print(i)  #: break "print(" Failed to trace builtin operator #: category logging
    return x


@torch.compile(backend="eager")
def f(x):
    y = x + 1
    y = repeat(y)
    return y.relu()


f(torch.ones(3))
