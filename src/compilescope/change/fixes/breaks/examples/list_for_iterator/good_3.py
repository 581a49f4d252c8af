import torch


def inputs(n):
    base = torch.ones(3) * n
    pairs = list(zip((1, 2), (base, base + 1)))
    return base, pairs  # of one call


@torch.compile(backend="eager")
def f(x, pairs):
    for n, y in pairs:
        x = x + n * y
    return x


f(*inputs(2))
