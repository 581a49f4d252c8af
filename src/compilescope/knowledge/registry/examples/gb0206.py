"""An assignment to `requires_grad` of a tensor."""

import torch


def f(x):
    x.requires_grad = True  # breaks here
    return (x * 2).detach()


def fixed(x):
    return (x * 2).detach()


def inputs():
    return (torch.ones(3),)
