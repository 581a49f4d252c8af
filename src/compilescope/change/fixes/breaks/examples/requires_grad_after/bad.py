import torch


def f(x):
    w = torch.zeros(3, requires_grad=True)  # a probe
    return ((x + w) ** 2).sum().detach()


torch.compile(f, backend="eager")(torch.ones(3))
