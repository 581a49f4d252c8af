"""Whether gradients are on is given as a tensor."""

import torch


def f(x):
    return torch.ops.higher_order.wrap_with_set_grad_enabled(x, torch.sin, x)  # breaks here


def inputs():
    return (torch.ones(3),)
