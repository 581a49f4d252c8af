"""An object of a class that was made inside the compiled function is returned."""

import torch

CONFIG = {"enable_trace_load_build_class": True}


def f(x):
    class Result:
        pass

    result = Result()
    result.value = x + 1
    return result  # breaks here


def inputs():
    return (torch.ones(3),)
