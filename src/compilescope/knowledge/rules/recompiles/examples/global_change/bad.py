import torch

COUNT = 3

@torch.compile(backend="eager")
def f(x):
    return x * COUNT

for _ in range(4):
    print(f(torch.ones(3)))
    COUNT += 1
