"""A branch of `torch.cond` gives a size that is kept open."""

import torch


def f(x):
    def yes(x):
        return x + 1, x.shape[0]

    def no(x):
        return x - 1, x.shape[0]

    return torch.cond(x.sum() > 0, yes, no, (x,))  # breaks here


def run():
    return torch.compile(f, backend="eager", dynamic=True)(torch.ones(4))


def run_fixed():
    def add(x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,)), x.shape[0]

    return torch.compile(add, backend="eager", dynamic=True)(torch.ones(4))
