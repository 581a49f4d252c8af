"""The condition of `torch.cond` is a list."""

import torch


def f(x):
    return torch.cond([x.sum() > 0], torch.sin, torch.cos, (x,))  # breaks here


def inputs():
    return (torch.ones(3),)
