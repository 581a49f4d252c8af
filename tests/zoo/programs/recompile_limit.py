"""Shows a function that hits the recompile limit and runs eagerly from then on."""

import torch

#: graphs 3


@torch.compile(backend="eager", dynamic=False)  #: recompile 2 "x.size()[0]" 2 -> 3 #: limit #: eager recompile limit
def f(x):
    return x * 2


with torch._dynamo.config.patch(recompile_limit=3):
    for size in (2, 3, 4, 5, 6):
        f(torch.ones(size))
