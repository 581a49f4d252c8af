"""Shows a clock read in the middle."""

import time

import torch

#: graphs 2


@torch.compile(backend="eager")
def f(x):
    y = x + 1
    start = time.time()  #: break "time.time()" Attempted to call function marked as skipped #: with break/GB9193 break "time.time()" Call to a time function #: category skipped-function
    return y * 2, start


f(torch.ones(3))
