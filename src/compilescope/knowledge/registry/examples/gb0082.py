"""`del` of a global: Dynamo has no rule for that instruction of Python."""

import torch

cache = None


def f(x):
    global cache
    cache = x * 2
    y = cache + 1
    del cache  # breaks here
    return y


kept = None


def fixed(x):
    global kept
    kept = x * 2
    y = kept + 1
    kept = None
    return y


def inputs():
    return (torch.ones(3),)
