import torch


def f(x, n):
    return x[: n.item()] * 2


g = torch.compile(f, backend="eager")
g(torch.ones(3), torch.tensor(2))
