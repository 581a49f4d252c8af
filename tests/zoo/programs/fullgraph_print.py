"""Shows a break that fullgraph=True makes an error."""

import torch

#: graphs 0


@torch.compile(backend="eager", fullgraph=True)
def f(x):
    y = x + 1
    print("never")  #: failure Unsupported "print(" Failed to trace builtin operator
    return y * 2


try:
    f(torch.ones(3))
except torch._dynamo.exc.Unsupported:
    pass
else:
    raise SystemExit("no error")
