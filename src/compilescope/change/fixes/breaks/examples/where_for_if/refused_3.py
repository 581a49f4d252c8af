#: because: gradient of `x / x.norm\(\)` may be NaN
import torch


def f(x):
    y = x
    if x.abs().max() > 0:
        y = x / x.norm()
    return y * 2


torch.compile(f, backend="eager")(torch.ones(3))
