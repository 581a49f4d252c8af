#: because: unknown whether
import torch


def f(x, values):
    y = x.clone()
    y[torch.nonzero(y > 0)] = values
    return y


torch.compile(f, backend="eager")(torch.ones(3), torch.ones(1))
