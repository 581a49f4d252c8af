"""`copy.deepcopy` of a tensor: Dynamo does not copy objects."""

import copy

import torch


def f(x):
    kept = copy.deepcopy(x)  # breaks here
    return x * 2 + kept


def fixed(x):
    kept = x.clone()
    return x * 2 + kept


def inputs():
    return (torch.ones(3),)
