"""A match of a regular expression is returned: Dynamo cannot make it anew behind the graph."""

import re

import torch


def f(x):
    found = re.match("([a-z]+)", "layer1")
    return x + 1, found  # breaks here


def inputs():
    return (torch.ones(3),)
