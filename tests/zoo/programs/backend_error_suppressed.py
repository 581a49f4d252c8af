"""Shows a backend that raises while errors are suppressed, so the frame runs eagerly."""

import torch

#: graphs 1


def backend(gm, example_inputs):
    raise ValueError("no kernel")


@torch.compile(backend=backend)  #: eager backend
def f(x):
    return x * 2


with torch._dynamo.config.patch(suppress_errors=True):
    f(torch.ones(3))
