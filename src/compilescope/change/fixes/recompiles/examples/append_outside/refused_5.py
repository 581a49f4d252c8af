#: because: may change `y`
import torch


def shift(t):
    t.add_(1)


@torch.compile(backend="eager")
def f(x, seen):
    y = x.sin()
    seen.append(y.mean())
    shift(y)
    return y * 2


seen = []
for _ in range(3):
    f(torch.ones(3), seen)
