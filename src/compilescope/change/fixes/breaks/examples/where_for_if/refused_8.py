#: because: a Python number is needed
import torch


def f(x):
    peak = x.abs().max().item()
    if peak > 0.7:
        x = x * 2
    return x, round(peak, 1)


torch.compile(f, backend="eager")(torch.tensor([1.0, 2.0]))
