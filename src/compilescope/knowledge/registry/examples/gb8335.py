"""A generator that changes a list is returned: making it anew would change the list again."""

import torch


def numbers(seen, x):
    seen.append(1)  # breaks here
    yield x + len(seen)


def f(x):
    return x + 1, numbers([], x)


def inputs():
    return (torch.ones(3),)
