"""`backward(inputs=...)` for a tensor that was made inside the compiled function."""

import torch

CONFIG = {"trace_autograd_ops": True}
ALSO = ("GB8985",)


def f(x):
    weight = torch.zeros(3).requires_grad_()
    loss = (x * weight).sum()
    loss.backward(inputs=[weight])  # breaks here
    return x * 2


def inputs():
    return (torch.ones(3, requires_grad=True),)
