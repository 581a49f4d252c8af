"""One graph, but it only copies: the work is done in eager mode."""

import torch


def make(backend):
    copy = torch.compile(torch.clone, backend=backend, dynamic=True)

    def score(x):
        return copy(x[: x.shape[0] // 2 * 2].softmax(0).sum(1))

    return score
