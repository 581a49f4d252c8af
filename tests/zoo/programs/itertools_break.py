"""Shows itertools.takewhile with a predicate that prints."""

import itertools

import torch

#: graphs 0 #: without tracing/itertools-predicates graphs 2


def small(n):
    print(n)  #: break "print(" Failed to trace builtin operator #: category logging #: without tracing/itertools-predicates none
    return n < 3


@torch.compile(backend="eager")  #: eager Failed to trace builtin operator #: without tracing/itertools-predicates none
def f(x):
    y = x + 1
    kept = list(itertools.takewhile(small, [1, 2, 3]))  #: without tracing/itertools-predicates break "list(" Unsupported method call #: without tracing/itertools-predicates break "itertools.takewhile(small, [1, 2, 3]))" Unsupported function call #: without tracing/itertools-predicates category skipped-function
    return y * len(kept)


f(torch.ones(3))
