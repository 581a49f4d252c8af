import torch


def f(x, y, tolerance):
    close = ((x - y).abs().max().double() < tolerance) & x.isfinite().all()
    return torch.where(~close, (x + y) / 2, y * 1)


torch.compile(f, backend="eager")(torch.ones(3), torch.ones(3), 2.0)
