#: because: calls seen.append
import torch


def f(x, seen):
    if x.sum() > 4:
        return x * 2
    seen.append(1)
    return x


torch.compile(f, backend="eager")(torch.ones(3), [])
