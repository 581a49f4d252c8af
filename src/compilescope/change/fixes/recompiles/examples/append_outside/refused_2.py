#: because: needs `y`, which is read before it|computes something both before and after it
import torch

seen = []


@torch.compile(backend="eager")
def f(x):
    y = x.sin()
    seen.append(y)
    y = y.cumsum(0) + 1
    return y * 2


for _ in range(3):
    f(torch.ones(3))
