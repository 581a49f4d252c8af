import torch

def f(x):
    return x * 2

compiled = torch.compile(f, backend="eager", dynamic=False)
for _ in range(2):
    print(compiled(torch.ones(3)))
