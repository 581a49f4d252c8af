import torch

def f(x):
    return x * 2

compiled = torch.compile(f, backend="eager")
batched = torch.compile(torch.vmap(f), backend="eager")
print(compiled(torch.ones(3)))
print(batched(torch.ones(2, 3)))
