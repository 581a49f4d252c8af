"""The function of a higher-order operator gives a string."""

import torch
from torch._higher_order_ops import while_loop


def f(x):
    return while_loop(lambda x: x.sum() < 9, lambda x: ("a",), (x,))  # breaks here


def inputs():
    return (torch.ones(3),)
