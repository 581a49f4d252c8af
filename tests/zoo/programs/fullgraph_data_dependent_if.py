"""Shows a branch on data that fullgraph=True makes an error."""

import torch

#: graphs 0


@torch.compile(backend="eager", fullgraph=True)
def f(x):
    if x.sum() > 0:  #: failure Unsupported "x.sum() > 0" Data-dependent branching
        return x + 1
    return x - 1


try:
    f(torch.ones(3))
except torch._dynamo.exc.TorchDynamoException:
    pass
else:
    raise SystemExit("no error")
