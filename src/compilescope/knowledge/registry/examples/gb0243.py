"""`_pair` makes a pair of something that is neither a constant nor a list."""

import torch
from torch.nn.modules.utils import _pair


def f(x):
    return x + len(_pair(x.sin))  # breaks here


def fixed(x):
    return x + len((x.sin, x.sin))


def inputs():
    return (torch.ones(3),)
