import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, n):
    if n > 3:
        return x * 2
    return x + 1

for n in (2, 3, 4, 5):
    f(torch.ones(3), n)
