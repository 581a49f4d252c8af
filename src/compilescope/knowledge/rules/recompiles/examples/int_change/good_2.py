import torch

@torch.compile(backend="eager", dynamic=False)
def f(x, n):
    return x * n

for n in (2, 3, 4):
    print(f(torch.ones(3), torch.tensor(n)))
