import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, n):
    for i in range(n):
        x = x + i
    return x

for n in (3, 4, 5):
    print(f(torch.ones(3), n))
