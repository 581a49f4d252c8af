"""An `assert` on a size that torch.compile keeps open is false."""

import torch


def f(x):
    assert x.shape[0] > 10, "too few rows"  # breaks here
    return x + 1


def run():
    x = torch.ones(4)
    torch._dynamo.mark_dynamic(x, 0)
    return torch.compile(f, backend="eager")(x)
