import torch


def f(x):
    y = x + 1
    full = torch.func.jacrev(lambda v: v**2)(y.detach())  # n by n
    return full.diagonal() * 2


torch.compile(f, backend="eager")(torch.ones(3))
