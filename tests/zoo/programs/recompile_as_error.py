"""Shows the first recompile made an error."""

import torch

#: graphs 1


@torch.compile(backend="eager")  #: failure RecompileError - -
def f(x):
    return x * 2


with torch._dynamo.config.patch(error_on_recompile=True):
    try:
        f(torch.ones(3))
        f(torch.ones(3, dtype=torch.float64))
    except torch._dynamo.exc.RecompileError:
        pass
    else:
        raise SystemExit("no error")
