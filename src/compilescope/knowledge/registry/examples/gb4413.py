"""A function under activation checkpointing changes an attribute and does not set it back."""

import torch
from torch.utils.checkpoint import checkpoint


class State:
    step = 0


state = State()


def block(x):
    state.step = 1
    return x.sin()


def f(x):
    return checkpoint(block, x, use_reentrant=False)  # breaks here


def plain_block(x):
    return x.sin()


def fixed(x):
    state.step = 1
    return checkpoint(plain_block, x, use_reentrant=False)


def inputs():
    return (torch.ones(3),)
