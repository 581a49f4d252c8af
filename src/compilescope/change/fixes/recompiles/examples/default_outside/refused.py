#: because: `bias` is None in some calls, and the function makes no tensor for it: that takes two graphs
import torch


@torch.compile(backend="eager")
def f(x, bias=None):
    y = x * 2
    if bias is not None:
        y = y + bias
    return y.relu()


for bias in (None, torch.ones(3)):
    f(torch.ones(3), bias)
