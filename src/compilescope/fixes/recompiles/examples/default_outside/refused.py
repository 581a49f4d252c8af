#: because: `bias` is None in some calls and not in others, and the function does not say which tensor would change nothing: each case needs its graph
import torch


@torch.compile(backend="eager")
def f(x, bias=None):
    y = x * 2
    if bias is not None:
        y = y + bias
    return y.relu()


for bias in (None, torch.ones(3)):
    f(torch.ones(3), bias)
