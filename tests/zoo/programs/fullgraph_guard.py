"""Shows a branch on a captured scalar that fullgraph=True makes an error."""

import torch

#: graphs 0


@torch.compile(backend="eager", fullgraph=True)
def f(x):
    n = x.sum().item()
    if n > 3:  #: failure UserError "n > 3" Could not guard on data-dependent expression
        return x + 1
    return x - 1


try:
    f(torch.ones(3))
except torch._dynamo.exc.UserError:
    pass
else:
    raise SystemExit("no error")
