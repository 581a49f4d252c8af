"""`backward(inputs=...)` with no tensor that needs a gradient."""

import torch

CONFIG = {"trace_autograd_ops": True}


def f(x, y):
    loss = (x * y).sum()
    loss.backward(inputs=[y])  # breaks here
    return loss.detach()


def inputs():
    return torch.ones(3, requires_grad=True), torch.ones(3)
