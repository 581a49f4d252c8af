"""A break under a context manager that cannot be left and entered again."""

import torch


class Scaled:
    def __enter__(self):
        return 2

    def __exit__(self, *error):
        return False


def f(x):
    with Scaled() as scale:
        y = x * scale
        torch._dynamo.graph_break()  # breaks here
    return y + 1


def fixed(x):
    with Scaled() as scale:
        y = x * scale
    return y + 1


def inputs():
    return (torch.ones(3),)
