import torch

def f(x):
    return x * 2

compiled = torch.compile(f, backend="eager")
print(compiled(torch.ones(3)))
print(torch.vmap(compiled)(torch.ones(2, 3)))
