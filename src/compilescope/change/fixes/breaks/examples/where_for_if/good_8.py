import torch


def f(x, y, strict):
    bad = strict and (x - y).abs().max() > 3
    value = x * y
    if not strict:
        value = value * 2
    else:
        value = torch.where(~bad, value * 2, value)
    return value + 1


torch.compile(f, backend="eager")(torch.ones(3), torch.ones(3), True)
