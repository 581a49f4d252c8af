#: because: draws random numbers
import torch


def f(x):
    if bool(torch.rand(()) > 0.5):
        return x.double()
    return x + 1


torch.compile(f, backend="eager")(torch.ones(3))
