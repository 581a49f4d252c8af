import torch


def f(x, mask):
    hidden = (~mask).any()
    y = x.double() if x.sum() > 4 else x
    z = y[mask] if hidden else y * 2
    return z + 1


torch.compile(f, backend="eager")(torch.ones(3), torch.ones(3, dtype=torch.bool))
