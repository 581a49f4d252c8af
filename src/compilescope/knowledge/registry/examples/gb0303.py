"""The operator `while_loop` is called with a keyword that it does not take."""

import torch


def f(x):
    loop = torch.ops.higher_order.while_loop
    return loop(lambda x: x.sum() < 9, lambda x: (x + 1,), (x,), (), steps=1)  # breaks here


def inputs():
    return (torch.ones(3),)
