#: because: other code may need the Python value
import torch


def is_flat(x, y):
    return x.std() < 1e-3 or not y.any()


def f(x, y):
    return x * y + is_flat(x, y)


torch.compile(f, backend="eager")(torch.ones(3), torch.arange(3.0))
