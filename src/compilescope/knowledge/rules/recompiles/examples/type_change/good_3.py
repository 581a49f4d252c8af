import torch

@torch.compile(backend="eager")
def f(x, v):
    return x * v

print(f(torch.ones(3), torch.tensor(2.5)))
print(f(torch.ones(3), torch.tensor(2.5)))
