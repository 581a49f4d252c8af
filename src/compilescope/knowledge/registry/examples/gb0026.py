"""A tensor subclass is made with more than a tensor."""

import torch


class Tagged(torch.Tensor):
    pass


def f(x):
    y = Tagged(2, 3)  # breaks here
    return x + y.numel()


def inputs():
    return (torch.ones(3),)
