import torch


def f(x):
    return 2 * (torch.where(x > 0, x, 0).sum(dtype=torch.float32) / (x > 0).sum()).to(x.dtype)


torch.compile(f, backend="eager")(torch.full((1000,), 400.0, dtype=torch.float16))
