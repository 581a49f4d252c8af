"""A function under activation checkpointing changes a list that lives outside it."""

import torch
from torch.utils.checkpoint import checkpoint

seen = []


def block(x):
    seen.append("block")  # breaks here
    return x.sin()


def f(x):
    return checkpoint(block, x, use_reentrant=False)


def plain_block(x):
    return x.sin()


def fixed(x):
    seen.append("block")
    return checkpoint(plain_block, x, use_reentrant=False)


def inputs():
    return (torch.ones(3),)
