from torch import compile, ones
import torch


def f(x):
    assert x.ndim == 1, f"up to 4, not {x.max()}"
    torch._assert_async(x.abs().max() < 4, "up to 4, not x.max()")
    return x + 1


compile(f, backend="eager")(ones(3))
