import torch


def f(x):
    if x.sum() > 0:
        # Enough.
        return x * 2
    # Too little.
    return x - 1


torch.compile(f, backend="eager")(torch.ones(3))
