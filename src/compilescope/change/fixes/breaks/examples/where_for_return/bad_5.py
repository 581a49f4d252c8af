import torch


def f(x, weights):
    total = weights.sum()
    if total > 0:
        return x / total
    return x * 0.5


torch.compile(f, backend="eager")(torch.ones(3), torch.ones(3))
