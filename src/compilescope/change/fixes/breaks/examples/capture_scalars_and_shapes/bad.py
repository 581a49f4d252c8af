import torch


@torch.compile(backend="eager")
def f(x):
    kept = torch.nonzero(x > 0)
    return x[: kept.max().item()] * kept.shape[0]


f(torch.ones(3))
