#: because: from inside a `with`
import torch


def f(x):
    with torch.no_grad():
        if x.sum() > 0:
            return x @ x
    return x


torch.compile(f, backend="eager")(torch.ones(3, 3))
