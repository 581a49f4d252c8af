#: note: Who called sees that `top` changes, so it is changed in place here too.
import torch


def f(x, top):
    size = (
        x.norm()
    )
    if size > 10: x = x * 0.5
    elif 1 < size <= 10:
        x = x - 1; top += 1
    return x * 2


torch.compile(f, backend="eager")(torch.ones(3), torch.zeros(3))
