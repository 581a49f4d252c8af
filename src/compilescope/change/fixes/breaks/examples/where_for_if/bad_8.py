#: note: The name holds False or a tensor; where it is False, the flag is.
import torch


def f(x, y, strict):
    bad = strict and (x - y).abs().max() > 3
    value = x * y
    if not bad:
        value = value * 2
    return value + 1


torch.compile(f, backend="eager")(torch.ones(3), torch.ones(3), True)
