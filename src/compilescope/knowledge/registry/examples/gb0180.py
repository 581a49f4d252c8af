"""`dataclasses.fields` of a class, where Dynamo wants an object."""

import dataclasses

import torch


@dataclasses.dataclass
class Options:
    scale: int = 2


def f(x):
    return x * len(dataclasses.fields(Options))  # breaks here


def fixed(x):
    return x * len(dataclasses.fields(Options()))


def inputs():
    return (torch.ones(3),)
