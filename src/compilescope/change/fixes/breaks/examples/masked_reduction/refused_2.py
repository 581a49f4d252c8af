#: because: whole rows
import torch


def f(x, keep):
    return x[keep].sum()


torch.compile(f, backend="eager")(torch.ones(3, 2), torch.tensor([True, False, True]))
