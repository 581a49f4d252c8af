import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

print(f(torch.ones(1, 3)))
print(f(torch.ones(3).unsqueeze(0)).squeeze(0))
