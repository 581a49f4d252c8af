"""The score comes from eager mode; the softmax in the graph changes nothing."""

import torch


def pass_on(y, x):
    return y + 0 * x.softmax(0).sum()


def make(backend):
    compiled = torch.compile(pass_on, backend=backend, dynamic=True)

    def score(x):
        return compiled(x[: x.shape[0] // 2 * 2].softmax(0).sum(1), x)

    return score
