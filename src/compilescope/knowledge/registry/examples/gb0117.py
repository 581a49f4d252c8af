"""`share_memory_` moves a tensor into shared memory, and Dynamo has no working rule for it."""

import torch


def f(x):
    y = x * 2
    y.share_memory_()  # breaks here
    return y + 1


def fixed(x):
    return x * 2 + 1


def inputs():
    return (torch.ones(3),)
