"""The condition of a `while_loop` gives a whole tensor, not one bool."""

import torch
from torch._higher_order_ops import while_loop


def f(x):
    return while_loop(lambda x: x < 3, lambda x: (x + 1,), (x,))  # breaks here


def fixed(x):
    return while_loop(lambda x: (x < 3).any(), lambda x: (x + 1,), (x,))


def inputs():
    return (torch.ones(3),)
