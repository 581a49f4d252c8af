import torch

@torch.compile(backend="eager")
def f(x, y):
    n = int(x.sum())
    return y.expand(n, 3)

for value in (2, 3, 4):
    f(torch.tensor([value]), torch.ones(3))
