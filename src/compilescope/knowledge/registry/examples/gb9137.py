"""A type is built of something that is no constant."""

from typing import List

import torch

ALSO = ("GB0007", "GB0467")


def f(x):
    List[x]  # breaks here
    return x + 1


def inputs():
    return (torch.ones(3),)
