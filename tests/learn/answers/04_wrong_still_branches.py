"""Symbols from the start, but the code still asks whether the size is odd."""

import torch


def score(x):
    if x.shape[0] % 2 == 1:
        x = x[:-1]
    return x.softmax(0).sum(1)


def make(backend):
    return torch.compile(score, backend=backend, dynamic=True)
