"""Shows fullgraph=True failing two calls below the compiled function."""

import torch

#: graphs 0


def leaf(x):
    print("never")  #: failure Unsupported "print(" Failed to trace builtin operator
    return x * 2


def middle(x):
    return leaf(x + 1) - 1


@torch.compile(backend="eager", fullgraph=True)
def f(x):
    return middle(x * 2).relu()


try:
    f(torch.ones(3))
except torch._dynamo.exc.Unsupported:
    pass
else:
    raise SystemExit("no error")
