"""A callback is queued for the end of the backward pass."""

import torch
from torch.autograd import Variable


def f(x):
    Variable._execution_engine.queue_callback(lambda: None)  # breaks here
    return x + 1


def inputs():
    return (torch.ones(3),)
