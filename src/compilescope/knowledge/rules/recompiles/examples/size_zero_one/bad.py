import torch

@torch.compile(backend="eager", dynamic=True)
def f(x):
    return x * 2

for size in (3, 4, 1, 0):
    print(f(torch.ones(size)))
