import torch


def f(x):
    if x.max() > 3: return x * 2, x
    elif x.min() < 0:
        return -x, x
    else:
        return x + 1, x


torch.compile(f, backend="eager")(torch.ones(3))
