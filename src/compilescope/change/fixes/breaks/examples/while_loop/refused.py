#: because: changes `parts`
import torch


def f(x):
    parts = []
    while x.abs().max() > 1:
        parts.append(x)
        x = x / 2
    return x + len(parts)


torch.compile(f, backend="eager")(torch.full((3,), 4.0))
