import torch


def f(x):
    steps = torch.arange(3, device=torch.device("cpu"))  # on the same device
    table = torch.zeros(3, 3, dtype=x.dtype, device=torch.device("cpu"))
    return x + steps + table.sum()


torch.compile(f, backend="eager")(torch.ones(3))
