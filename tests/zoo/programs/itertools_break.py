"""Shows itertools.takewhile with a predicate that prints."""

import itertools

import torch

#: graphs 0 #: 2.11 graphs 2


def small(n):
    print(n)  #: break "print(" Failed to trace builtin operator #: category logging #: 2.11 none
    return n < 3


@torch.compile(backend="eager")  #: eager Failed to trace builtin operator #: 2.11 none
def f(x):
    y = x + 1
    kept = list(itertools.takewhile(small, [1, 2, 3]))  #: 2.11 break "list(" Unsupported method call #: 2.11 break "itertools.takewhile(small, [1, 2, 3]))" Unsupported function call #: 2.11 category skipped-function
    return y * len(kept)


f(torch.ones(3))
