import torch

@torch.compile(backend="eager", dynamic=True)
def f(x):
    if x.shape[0] > 4:
        return x * 2
    return x + 1

for size in (3, 5, 6, 4):
    f(torch.ones(size))
