"""`as_subclass` with a subclass that was made inside, or that is none of Dynamo's kind."""

import torch


def f(x):
    return x.as_subclass(torch.Tensor) + 1  # breaks here


def fixed(x):
    return x + 1


def inputs():
    return (torch.ones(3),)
