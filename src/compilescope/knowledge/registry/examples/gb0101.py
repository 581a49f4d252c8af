"""A called function of another module keeps the handle of a hook in a global there."""

import torch

ALSO = ("GB0100",)

hooks = {}
exec(
    """
handle = None

def watch(x):
    global handle
    handle = x.register_hook(lambda grad: grad * 2)
    return x
""",
    hooks,
)
watch = hooks["watch"]


def f(x):
    return watch(x) * 2  # breaks here


def fixed(x):
    x.register_hook(lambda grad: grad * 2)
    return x * 2


def inputs():
    return (torch.ones(3, requires_grad=True),)
