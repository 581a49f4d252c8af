import torch


def f(x, weights):
    total = weights.sum()
    return x / total if total > 0 else x * 0.5


torch.compile(f, backend="eager")(torch.ones(3), torch.ones(3))
