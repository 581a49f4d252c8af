#: because: may be empty
import torch


def f(x, z):
    parts = [each * 2 for each in z]
    if x.is_cuda is False and all(part.sum() > 0 for part in parts):
        x = x * 2
    return x + 1


torch.compile(f, backend="eager")(torch.ones(3), torch.ones(2, 3))
