#: note: What a side was given and gives back unchanged must be a copy for `torch.cond`.
import torch


def f(x, y):
    if x.min() > 0: z = x.log() @ y
    elif y.min() > 0:
        z = y.log()
        z -= 1
    else:
        z = x
    return z * 2


torch.compile(f, backend="eager")(torch.ones(3, 3), torch.ones(3, 3))
