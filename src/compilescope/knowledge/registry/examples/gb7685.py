"""A class of torch is asked for an attribute that it does not have."""

import torch


def f(x):
    return x + torch.Generator.seed_of_all  # breaks here


def inputs():
    return (torch.ones(3),)
