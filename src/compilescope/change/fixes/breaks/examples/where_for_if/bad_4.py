import torch


def f(x, z):
    parts = [each * 2 for each in z]
    y = x.sin()
    if any(part.isnan().any() for part in parts):
        y = y * 0
    return y + 1


torch.compile(f, backend="eager")(torch.ones(3), torch.ones(2, 3))
