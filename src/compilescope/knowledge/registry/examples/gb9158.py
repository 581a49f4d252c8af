"""The message of `torch._check` needs a value that exists while tracing only."""

import torch


def f(x):
    y = x + 1
    torch._check(x.shape[0] == 3, lambda: f"bad {y}")  # breaks here
    return y


def fixed(x):
    torch._check(x.shape[0] == 3, lambda: "bad")
    return x + 1


def inputs():
    return (torch.ones(3),)
