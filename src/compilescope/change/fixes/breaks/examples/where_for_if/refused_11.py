#: because: `armed` of `armed` is set before the test
import torch


def f(x, armed=True):
    loud = armed and x.max() > 3
    armed = not armed
    if loud:
        x = x - 100
    return x + 1


torch.compile(f, backend="eager")(torch.ones(3), True)
