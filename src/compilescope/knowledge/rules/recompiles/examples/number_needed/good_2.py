import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, n):
    return x + torch.arange(n).sum()

for n in (3, 4, 5):
    print(f(torch.ones(3), n))
