"""A break under `torch.fx.traceback.annotate`, which cannot be left and entered again."""

import torch

ALSO = ("GB0025",)


def f(x):
    with torch.fx.traceback.annotate({"stage": 0}):
        y = x * 2
        torch._dynamo.graph_break()  # breaks here
    return y + 1


def fixed(x):
    with torch.fx.traceback.annotate({"stage": 0}):
        y = x * 2
    return y + 1


def inputs():
    return (torch.ones(3),)
