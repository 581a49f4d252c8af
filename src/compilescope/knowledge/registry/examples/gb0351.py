"""A function under `wrap_with_set_grad_enabled` gets an object of yours."""

import torch


class Options:
    scale = 2


options = Options()


def f(x):
    wrap = torch.ops.higher_order.wrap_with_set_grad_enabled
    return wrap(False, lambda x, options: x * options.scale, x, options)  # breaks here


def fixed(x):
    wrap = torch.ops.higher_order.wrap_with_set_grad_enabled
    return wrap(False, lambda x: x * options.scale, x)


def inputs():
    return (torch.ones(3),)
