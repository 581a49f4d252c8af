"""Shows item and nonzero under fullgraph=True, which captures both."""

import torch

#: graphs 1


@torch.compile(backend="eager", fullgraph=True)
def f(x):
    return (x > 0).nonzero() * x.sum().item()


f(torch.ones(3))
