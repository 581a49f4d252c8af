"""`step_unsupported()` before anything was traced to which Dynamo could go back."""

import torch


def f(x):
    torch._dynamo.step_unsupported()  # breaks here
    return x + 1


def fixed(x):
    return x + 1


def inputs():
    return (torch.ones(3),)
