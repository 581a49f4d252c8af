"""Shows that fullgraph=True makes the recompile limit an error."""

import torch

#: graphs 2


@torch.compile(backend="eager", fullgraph=True, dynamic=False)  #: recompile 1 "x.size()[0]" 2 -> 3 #: limit #: failure FailOnRecompileLimitHit - -
def f(x):
    return x * 2


with torch._dynamo.config.patch(recompile_limit=2):
    try:
        for size in (2, 3, 4):
            f(torch.ones(size))
    except torch._dynamo.exc.FailOnRecompileLimitHit:
        pass
    else:
        raise SystemExit("no error")
