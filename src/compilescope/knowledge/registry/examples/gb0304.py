"""The operator `while_loop` is called with a dict of additional inputs."""

import torch
from torch._higher_order_ops.while_loop import while_loop_op


def f(x):
    return while_loop_op(lambda x: x.sum() < 3, lambda x: (x + 1,), (x,), {})  # breaks here


def inputs():
    return (torch.ones(3),)
