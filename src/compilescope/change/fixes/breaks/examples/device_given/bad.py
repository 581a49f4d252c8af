import torch


def f(x):
    with torch.device("cpu"):
        steps = torch.arange(3)  # on the same device
        table = torch.zeros(3, 3, dtype=x.dtype)
    return x + steps + table.sum()


torch.compile(f, backend="eager")(torch.ones(3))
