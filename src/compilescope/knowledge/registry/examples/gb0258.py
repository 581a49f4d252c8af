"""`deque` is called with too many arguments."""

from collections import deque

import torch


def f(x):
    return x + len(deque([1], 2, 3))  # breaks here


def inputs():
    return (torch.ones(3),)
