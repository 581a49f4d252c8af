import torch

COUNT = 3

@torch.compile(backend="eager")
def f(x, count):
    return x * count

for _ in range(4):
    print(f(torch.ones(3), torch.tensor(COUNT)))
    COUNT += 1
