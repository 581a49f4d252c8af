#: because: line of the caller
import warnings
import torch


def f(x):
    y = x + 1
    warnings.warn("careful", stacklevel=2)
    return y * 2


torch.compile(f, backend="eager")(torch.ones(3))
