"""A method of a compiled regular expression gives an iterator."""

import re

import torch

ALSO = ("GB0811",)

pattern = re.compile("[0-9]")


def f(x):
    found = list(pattern.finditer("a1b2"))  # breaks here
    return x + len(found)


def fixed(x):
    found = pattern.findall("a1b2")
    return x + len(found)


def inputs():
    return (torch.ones(3),)
