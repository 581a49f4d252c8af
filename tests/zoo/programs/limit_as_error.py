"""Shows the recompile limit made an error."""

import torch

#: graphs 2


@torch.compile(backend="eager", dynamic=False)  #: recompile 1 "x.size()[0]" 2 -> 3 #: limit #: failure FailOnRecompileLimitHit - -
def f(x):
    return x * 2


with torch._dynamo.config.patch(recompile_limit=2, fail_on_recompile_limit_hit=True):
    try:
        for size in (2, 3, 4):
            f(torch.ones(size))
    except torch._dynamo.exc.FailOnRecompileLimitHit:
        pass
    else:
        raise SystemExit("no error")
