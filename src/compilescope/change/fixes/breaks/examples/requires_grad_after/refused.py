#: because: not always true
import torch


def f(x, learn):
    w = torch.zeros(3, requires_grad=learn)
    return (x + w).sum().detach()


torch.compile(f, backend="eager")(torch.ones(3), True)
