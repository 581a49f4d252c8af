import torch

@torch.compile(backend="eager")
def f(x, mask):
    return x if mask is None else x * mask

print(f(torch.ones(3), torch.zeros(3)))
print(f(torch.ones(3), None))
