"""Eager mode writes its own result into the memory of the graph's."""

import torch


def softmax(x):
    return x.softmax(0)


def make(backend):
    compiled = torch.compile(softmax, backend=backend, dynamic=True)

    def score(x):
        rows = x.shape[0] // 2 * 2
        result = compiled(x)[:rows, 0]
        return result.copy_(x[:rows].softmax(0).sum(1))

    return score
