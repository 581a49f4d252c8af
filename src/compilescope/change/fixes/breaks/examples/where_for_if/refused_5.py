#: because: the condition calls check\(\)
import torch

seen = []


def check(part):
    seen.append(1)
    return part.sum() > 0


def f(x, parts):
    if any(check(part) for part in parts):
        x = x * 2
    return x + 1


torch.compile(f, backend="eager")(torch.ones(3), [torch.ones(2), torch.ones(3)])
