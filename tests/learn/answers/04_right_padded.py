"""Every input is padded to one size, so that the graph may be static."""

import torch

ROWS = 64


def padded_score(x):
    return x.softmax(0).sum(1)


def make(backend):
    compiled = torch.compile(padded_score, backend=backend, dynamic=False)

    def score(x):
        rows = x.shape[0] // 2 * 2
        full = x.new_full((ROWS, x.shape[1]), -torch.inf)
        full[:rows] = x[:rows]
        return compiled(full)[:rows]

    return score
