"""`autograd.grad` inside the compiled function, while the backward pass is compiled too."""

import torch

CONFIG = {"trace_autograd_ops": True}
FIXED_CONFIG = {"trace_autograd_ops": True}
ALSO = ("GB0003",)


def f(x):
    y = (x * x).sum()
    return torch.autograd.grad(y, x)[0]  # breaks here


def run():
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
        return torch.compile(f, backend="eager")(torch.ones(3, requires_grad=True))


def run_fixed():
    return torch.compile(f, backend="eager")(torch.ones(3, requires_grad=True))
