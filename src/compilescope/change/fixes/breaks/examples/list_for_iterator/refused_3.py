#: because: also used elsewhere
import torch


def inputs(n):
    base = torch.ones(3) * n
    return base, zip((1, 2), (base, base + 1))


@torch.compile(backend="eager")
def f(x, pairs):
    for n, y in pairs:
        x = x + n * y
    return x


f(*inputs(2))
next(inputs(3)[1])
