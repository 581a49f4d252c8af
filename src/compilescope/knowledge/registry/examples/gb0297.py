"""`random.Random` is made with its seed as a keyword."""

import random

import torch


def f(x):
    return x + random.Random(x=1).random()  # breaks here


def fixed(x):
    return x + random.Random(1).random()


def inputs():
    return (torch.ones(3),)
