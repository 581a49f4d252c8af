"""`backward(inputs=...)` for a tensor that is computed from others."""

import torch

CONFIG = {"trace_autograd_ops": True}


def f(x):
    y = x * 2
    loss = (y * y).sum()
    loss.backward(inputs=[y])  # breaks here
    return loss.detach()


def inputs():
    return (torch.ones(3, requires_grad=True),)
