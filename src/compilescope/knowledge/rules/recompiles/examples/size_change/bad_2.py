import torch

def f(x):
    return x * 2

compiled = torch.compile(f, backend="eager", dynamic=False)
for size in (3, 4, 5):
    compiled(torch.ones(size))
