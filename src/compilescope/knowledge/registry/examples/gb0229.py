"""A parameter is made of the `.data` of an input."""

import torch


def f(x):
    weight = torch.nn.Parameter(x.data)  # breaks here
    return (x * weight).detach()


def fixed(x):
    weight = torch.nn.Parameter(x)
    return (x * weight).detach()


def inputs():
    return (torch.ones(3),)
