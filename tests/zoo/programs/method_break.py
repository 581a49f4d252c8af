"""Shows a break in a method of a plain class called twice from one line."""

import torch

#: graphs 2


class Scaler:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        y = x * self.factor
        print("scaled")  #: break "print(" Failed to trace builtin operator #: category logging
        return y


double = Scaler(2.0)


@torch.compile(backend="eager")
def f(x):
    return double(double(x)) + 1


f(torch.ones(3))
