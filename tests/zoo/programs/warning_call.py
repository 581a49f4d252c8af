"""Shows a warning issued inside the compiled function."""

import warnings

import torch

#: graphs 2


@torch.compile(backend="eager")
def f(x):
    y = x + 1
    warnings.warn("careful", stacklevel=1)  #: break "warnings.warn(" Attempted to call function marked as skipped #: category logging
    return y * 2


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    f(torch.ones(3))
