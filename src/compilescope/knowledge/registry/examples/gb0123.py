"""`backward()` inside the compiled function: Dynamo does not trace it by default."""

import torch


def f(x):
    loss = (x * x).sum()
    loss.backward()  # breaks here
    return loss.detach()


FIXED_CONFIG = {"trace_autograd_ops": True}


def inputs():
    return (torch.ones(3, requires_grad=True),)
