import torch

@torch.compile(backend="eager", dynamic=True)
def f(x):
    total = x.sum()
    for i in range(x.shape[0]):
        total = total + i
    return total

for size in (3, 4, 5):
    print(f(torch.ones(size)))
