"""`skip_frame()` asks Dynamo to leave this function to plain Python."""

import torch


def f(x):
    torch._dynamo.skip_frame()  # breaks here
    return x + 1


def fixed(x):
    return x + 1


def inputs():
    return (torch.ones(3),)
