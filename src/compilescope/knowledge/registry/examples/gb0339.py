"""The condition of a `while_loop` is always true."""

import torch
from torch._higher_order_ops import while_loop


def f(x):
    return while_loop(lambda x: True, lambda x: (x + 1,), (x,))  # breaks here


def inputs():
    return (torch.ones(3),)
