"""A break within a named range of the profiler that is captured into the graph."""

import torch

CONFIG = {"capture_profiler_record_function": True}
FIXED_CONFIG = {"capture_profiler_record_function": True}
ALSO = ("GB0025",)


def f(x):
    with torch.profiler.record_function("double"):
        y = x * 2
        torch._dynamo.graph_break()  # breaks here
    return y + 1


def fixed(x):
    with torch.profiler.record_function("double"):
        y = x * 2
    return y + 1


def inputs():
    return (torch.ones(3),)
