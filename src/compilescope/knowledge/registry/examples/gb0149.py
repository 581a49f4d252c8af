"""`torch.func.grad` from outside is applied to a compiled function."""

import torch


def f(x):  # breaks here
    return x.sin().sum()


def run():
    return torch.func.grad(torch.compile(f, backend="aot_eager"))(torch.ones(3))


def run_fixed():
    return torch.compile(torch.func.grad(f), backend="aot_eager")(torch.ones(3))
