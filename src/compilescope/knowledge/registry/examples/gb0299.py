"""`string.Template` hands a function of its own to a compiled regular expression."""

import string

import torch

ALSO = ("GB0092",)

template = string.Template("layer $number")


def f(x):
    return x + len(template.substitute(number=1))  # breaks here


NAME = template.substitute(number=1)


def fixed(x):
    return x + len(NAME)


def inputs():
    return (torch.ones(3),)
