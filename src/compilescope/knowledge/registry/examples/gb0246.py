"""`one_hot` without a number of classes reads it from the data."""

import torch
import torch.nn.functional as F


def f(x):
    return F.one_hot(x) * 2  # breaks here


def fixed(x):
    return F.one_hot(x, num_classes=3) * 2


def inputs():
    return (torch.tensor([0, 1, 2]),)
