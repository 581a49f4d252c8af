import torch


def f(x):
    stopped = x.new_zeros((), dtype=torch.bool)
    for scale in (0.5, 0.25, 0.125):
        x = torch.where(stopped, x, x * scale)
        stopped = stopped | (x.max() < 1)
    return x + 1


torch.compile(f, backend="eager")(torch.full((3,), 9.0))
