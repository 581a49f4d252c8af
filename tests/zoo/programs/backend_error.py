"""Shows a backend that raises."""

import torch

#: graphs 1


def backend(gm, example_inputs):
    raise ValueError("no kernel")


@torch.compile(backend=backend)  #: failure BackendCompilerFailed - -
def f(x):
    return x * 2


try:
    f(torch.ones(3))
except torch._dynamo.exc.BackendCompilerFailed:
    pass
else:
    raise SystemExit("no error")
