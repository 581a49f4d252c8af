import torch

means = []


@torch.compile(backend="eager")
def f(x):
    y = x.sin()
    means.append(y.mean())
    return y * 2


for _ in range(3):
    f(torch.ones(3))
