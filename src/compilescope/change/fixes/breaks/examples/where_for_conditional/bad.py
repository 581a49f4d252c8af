import torch


def f(x, y):
    z = (x * 2  # up
         if x.sum() > y.sum()
         else x - 1)
    return z + 1


torch.compile(f, backend="eager")(torch.ones(3), torch.zeros(3))
