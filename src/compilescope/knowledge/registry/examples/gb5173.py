"""Two tensors on different devices meet in one operation."""

import torch


def f(x):
    return x + torch.ones(3, device="meta")  # breaks here


def inputs():
    return (torch.ones(3),)
